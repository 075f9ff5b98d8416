//! The files of a repository: a head of 39 bytes, then a flatbuffer, which may be compressed (specification, "Binary File
//! Format").

use bytes::Bytes;

use crate::codec::decode_zstd_within;
use crate::store::container::{ContainerBudget, ContainerReservation};
use crate::store::references::ReferenceError;

/// What every file begins with.
const MAGIC: &[u8] = "ICE🧊CHUNK".as_bytes();
/// The length of the name of the program that wrote a file, which follows.
const WRITER_BYTES: usize = 24;
/// The length of the head: the two, the version, the kind and the compression.
pub(super) const HEAD_BYTES: usize = MAGIC.len() + WRITER_BYTES + 3;
/// The largest file once it is decompressed, in bytes: places in it are kept in 32 bits.
const MAX_BYTES: u64 = 1 << 30;
/// How many times the length of a compressed file is tried first.
const USUAL_RATIO: usize = 4;
/// The least that is tried.
const LEAST_BYTES: usize = 1 << 12;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Snapshot = 1,
    Manifest = 2,
    Repository = 6,
}

/// The flatbuffer of a file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) bytes: Bytes,
    /// The memory for it.
    pub(super) reserved: ContainerReservation,
}

/// The flatbuffer of a file of a kind, within a budget.
pub(super) fn open(file: &Bytes, kind: FileKind, budget: &ContainerBudget) -> Result<Opened, ReferenceError> {
    let refused = ReferenceError::Repository;
    if !file.starts_with(MAGIC) {
        return Err(refused("one of its files does not begin as those of Icechunk do"));
    }
    let Some([version, found, compression]) =
        file.get(HEAD_BYTES - 3..HEAD_BYTES).and_then(|head| <[u8; 3]>::try_from(head).ok())
    else {
        return Err(refused("one of its files is damaged"));
    };
    if !(1..=2).contains(&version) {
        return Err(ReferenceError::SpecVersion { found: version });
    }
    if found != kind as u8 {
        return Err(refused("one of its files is of another kind than its name says"));
    }
    let body = file.slice(HEAD_BYTES..);
    let mut reserved = budget.empty();
    match compression {
        0 => {
            reserved.resize(body.len() as u64)?;
            // A copy, so that what is held is what is reserved.
            Ok(Opened { bytes: Bytes::copy_from_slice(&body), reserved })
        }
        1 => {
            let bytes = decompressed(&body, &mut reserved)?;
            Ok(Opened { bytes, reserved })
        }
        _ => Err(refused("one of its files has an unknown compression")),
    }
}

/// The decompressed bytes. What they take is reserved before they are there.
fn decompressed(body: &Bytes, reserved: &mut ContainerReservation) -> Result<Bytes, ReferenceError> {
    let most_of_all = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    let mut most = body.len().saturating_mul(USUAL_RATIO).clamp(LEAST_BYTES, most_of_all);
    loop {
        // The last guess may be far beyond what the file needs.
        let within = usize::try_from(reserved.resize_to_free(most as u64)).unwrap_or(most).min(most);
        match decode_zstd_within(body, within, &[]) {
            Ok(Some(mut bytes)) => {
                bytes.shrink_to_fit();
                reserved.resize(bytes.len() as u64)?;
                return Ok(bytes.into());
            }
            Ok(None) if within < most => {
                reserved.resize(most as u64)?;
            }
            Ok(None) if most < most_of_all => most = most.saturating_mul(USUAL_RATIO).min(most_of_all),
            Ok(None) => return Err(ReferenceError::Repository("one of its files is too long")),
            Err(_corrupt) => {
                return Err(ReferenceError::Repository("one of its files cannot be decompressed"));
            }
        }
    }
}
