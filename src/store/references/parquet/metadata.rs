//! `.zmetadata`: the documents of all nodes, the grids of the arrays, and the number of references in a file.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::grid::ChunkNumbers;
use crate::store::references::json::{quoted_bytes, syntax, with_quoted_numbers};
use crate::store::references::kerchunk::add_documents;
use crate::store::references::load::LoadedReferences;
use crate::store::references::table::TableBuilder;
use crate::store::{ContainerBudget, ReferenceError, ValueInfo, Version};

/// The key of the document.
pub(super) const KEY: &str = ".zmetadata";
/// The name of the document of an array of v2.
const ARRAY: &str = ".zarray";

/// What the document says.
#[derive(Debug)]
pub(in crate::store::references) struct Metadata {
    /// The documents of all nodes.
    pub(super) documents: LoadedReferences,
    /// The chunks of each array, by its prefix.
    arrays: BTreeMap<String, ChunkNumbers>,
    record_size: u64,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
    record_size: u64,
}

#[derive(Deserialize)]
struct Array {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    #[serde(default)]
    dimension_separator: Option<String>,
}

/// Where the reference of a chunk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordFile {
    /// The prefix of the array.
    pub(super) prefix: String,
    pub(super) chunks: ChunkNumbers,
    /// The number of the file.
    pub(super) record: u64,
    /// The number of the file's first chunk.
    pub(super) first: u64,
    /// How many chunks a file has, unless the array ends before.
    pub(super) rows: u64,
}

impl Metadata {
    pub(super) fn parse(
        document: &[u8],
        (version, modified): (Version, Option<SystemTime>),
        budget: &ContainerBudget,
    ) -> Result<Self, ReferenceError> {
        let mut table = TableBuilder::new(budget, document.len() as u64)?;
        let text =
            std::str::from_utf8(document).map_err(|_invalid| ReferenceError::Document("it is not UTF-8"))?;
        let copied = quoted_bytes(text);
        table.hold(copied)?;
        let text = &*with_quoted_numbers(text);
        let Head { metadata, record_size } = serde_json::from_str(text).map_err(|error| syntax(&error))?;
        if record_size == 0 {
            return Err(ReferenceError::Document("its `record_size` is 0"));
        }
        let mut arrays = BTreeMap::new();
        add_documents(&mut table, metadata, &mut |key, document| {
            let Some(prefix) =
                key.strip_suffix(ARRAY).filter(|prefix| prefix.is_empty() || prefix.ends_with('/'))
            else {
                return Ok(());
            };
            let Array { shape, chunks, dimension_separator } =
                serde_json::from_str(document.get()).map_err(|error| syntax(&error))?;
            if dimension_separator.is_some_and(|separator| separator != ".") {
                return Err(ReferenceError::Document("an array has another separator than `.` in its keys"));
            }
            let chunks = ChunkNumbers::new(&shape, &chunks);
            let chunks = chunks.ok_or(ReferenceError::Document("an array has no valid shape of chunks"))?;
            arrays.insert(prefix.to_owned(), chunks);
            Ok(())
        })?;
        table.release(copied);
        let info = ValueInfo { size: document.len() as u64, version, modified };
        Ok(Self { documents: LoadedReferences { info, table: table.finish()? }, arrays, record_size })
    }

    /// Where the reference of a key is; `None` if it is the key of no chunk.
    pub(super) fn place(&self, key: &str) -> Option<RecordFile> {
        let at = key.rfind('/').map_or(0, |slash| slash + 1);
        let (prefix, name) = key.split_at_checked(at)?;
        let chunks = self.arrays.get(prefix)?;
        let record = chunks.number(name)? / self.record_size;
        Some(self.place_of(prefix, chunks, record))
    }

    /// How many files the references of the array with a prefix have, at most; 0 if there is no such array.
    pub(super) fn record_count(&self, prefix: &str) -> u64 {
        self.arrays.get(prefix).map_or(0, |chunks| chunks.total().div_ceil(self.record_size))
    }

    /// The file of this number of the array with a prefix.
    pub(super) fn record(&self, prefix: &str, number: u64) -> Option<RecordFile> {
        Some(self.place_of(prefix, self.arrays.get(prefix)?, number))
    }

    fn place_of(&self, prefix: &str, chunks: &ChunkNumbers, record: u64) -> RecordFile {
        let first = record.saturating_mul(self.record_size);
        RecordFile {
            prefix: prefix.to_owned(),
            chunks: chunks.clone(),
            record,
            first,
            rows: self.record_size,
        }
    }

    /// The prefixes of all arrays below a prefix, in order.
    pub(super) fn arrays_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let from =
            self.arrays.range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        from.map(|(array, _)| &**array).take_while(move |array| array.starts_with(prefix))
    }
}

impl RecordFile {
    /// The key of the file.
    pub(super) fn file(&self) -> String {
        format!("{}refs.{}.parq", self.prefix, self.record)
    }

    /// The number of a file of this name, if it is one of this many.
    pub(super) fn number(name: &str, count: u64) -> Option<u64> {
        let digits = name.strip_prefix("refs.")?.strip_suffix(".parq")?;
        let number: u64 = digits.parse().ok().filter(|number| *number < count)?;
        (number.to_string() == digits).then_some(number)
    }
}
