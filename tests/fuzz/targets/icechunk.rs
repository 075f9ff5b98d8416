//! Files of Icechunk repositories: whatever they are made of, they are read within their budget or refused.
//!
//! The body of a file is compressed, which hides it from the fuzzer; so each input is also read as one that is not.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use zarrd::store::{ContainerBudget, check_icechunk};

/// The most memory that a file may take.
const BUDGET_BYTES: u64 = 4 << 20;

fuzz_target!(|input: &[u8]| {
    let budget = ContainerBudget::new(BUDGET_BYTES);
    let check = |file: Vec<u8>| {
        // There is more than a byte of a file for each thing in it.
        if let Ok(count) = check_icechunk(&Bytes::from(file), &budget) {
            assert!(count as u64 <= BUDGET_BYTES);
        }
    };
    check(input.to_vec());
    let Some((kind, body)) = input.split_first() else { return };
    let mut file = "ICE🧊CHUNK".as_bytes().to_vec();
    file.resize(36, b' ');
    file.extend([2, [1, 2, 6][usize::from(kind % 3)], 0]);
    check([&file, body].concat());
});
