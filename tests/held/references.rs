//! What a document of references takes while it is loaded, and as long as it is used.

use std::io::Write;
use std::path::Path;

use zarrd::cpu::{ComputePool, ComputePoolOptions};
use zarrd::key::StoreKey;
use zarrd::store::{
    AllowedPrefix, ByteRange, ContainerBudget, OpenBudgets, SharedStore, StoreOptions, open_within,
};

use super::{MIB, counting};

/// References of the document.
const REFERENCES: usize = 1_000_000;
/// The most that they may take, also while the document is read and parsed.
const MOST_BYTES: u64 = 400 * MIB;
/// References to each file, as of a file with a day of a variable.
const PER_FILE: usize = 500;

/// References that may lead to files below a directory.
pub(super) fn options(root: &Path) -> StoreOptions {
    let url = format!("file://{}/", root.display());
    let prefix = AllowedPrefix { url, at: None, private_addresses: false, options: StoreOptions::default() };
    StoreOptions { references: vec![prefix], ..StoreOptions::default() }
}

/// Writes a document of kerchunk with references into files that are not there, but for the last one.
fn write_document(root: &Path, data: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(root.join("million.json")).unwrap());
    write!(file, r#"{{"version": 1, "refs": {{".zgroup": "{{\"zarr_format\": 2}}""#).unwrap();
    for at in 0..REFERENCES - 2 {
        let (day, chunk) = (at / PER_FILE, at % PER_FILE);
        write!(
            file,
            r#", "temperature/{day}.{}.{}": ["file:///archive/reanalysis/2020/temperature_{day:06}.nc", {}, {}]"#,
            chunk / 25,
            chunk % 25,
            chunk * 81_234,
            80_000 + chunk
        )
        .unwrap();
    }
    write!(file, r#", "wind/0": ["file://{}", 4, 3]}}}}"#, data.display()).unwrap();
}

async fn value(store: &SharedStore, key: &str) -> Vec<u8> {
    let value = store.get(&StoreKey::parse(key).unwrap(), ByteRange::Whole, None).await.unwrap().unwrap();
    value.bytes(MIB).await.unwrap().to_vec()
}

/// Asserts what a million references take: at most 400 MiB while they are loaded, which is their budget. Returns how much it was.
pub(super) async fn a_million_references_take_no_more_than_their_budget(root: &Path) -> String {
    let data = root.join("data.nc");
    std::fs::write(&data, "0123456789").unwrap();
    write_document(root, &data);
    let cpu = ComputePool::new(ComputePoolOptions { threads: 2 }).unwrap();
    let references = ContainerBudget::new(MOST_BYTES);
    let budgets = OpenBudgets { references, ..OpenBudgets::default() };
    let url = format!("kerchunk+file://{}", root.join("million.json").display());
    let store = open_within(&url, &options(root), &cpu, &budgets).unwrap();
    let before = counting::begin_peak();
    assert_eq!(value(&store, "wind/0").await, b"456");
    let (peak, held) = (counting::peak() - before, counting::live().saturating_sub(before));
    assert!(peak <= MOST_BYTES, "{} MiB", peak / MIB);
    assert_eq!(value(&store, ".zgroup").await, br#"{"zarr_format": 2}"#);
    let again = counting::peak() - before;
    assert!(again <= MOST_BYTES, "{} MiB with a second read", again / MIB);
    format!("{REFERENCES} references: {} MiB while they are loaded, {} MiB then", peak / MIB, held / MIB)
}
