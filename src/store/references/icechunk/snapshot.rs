//! [`RepositorySnapshot`]: the nodes of a hierarchy at one commit, with the manifests of its arrays.
//!
//! The file is kept as it is once it is decompressed: an index of the nodes, and the order of their keys, lead into it.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use super::file::{self, FileKind, Opened};
use super::flat::{FlatTable, Malformed, Vector};
use super::id::{ObjectId, StoredNodeId};
use crate::key::StoreKey;
use crate::store::container::ContainerBudget;
use crate::store::references::ReferenceError;

/// The places of the fields of a snapshot.
mod field {
    pub(super) const ID: usize = 0;
    pub(super) const PARENT: usize = 1;
    pub(super) const NODES: usize = 2;
    pub(super) const TIME: usize = 3;
    pub(super) const MESSAGE: usize = 4;
}

/// The places of the fields of a node.
mod node {
    pub(super) const ID: usize = 0;
    pub(super) const PATH: usize = 1;
    pub(super) const DOCUMENT: usize = 2;
    pub(super) const KIND: usize = 3;
    pub(super) const DATA: usize = 4;
}

/// The places of the fields of an array.
mod array {
    pub(super) const SHAPE: usize = 0;
    pub(super) const MANIFESTS: usize = 2;
    pub(super) const SHAPE_V2: usize = 3;
}

/// The kind of a node that is an array, and of one that is a group.
const ARRAY: u8 = 1;
const GROUP: u8 = 2;
/// Bytes of a dimension in the shape of version 1.
const SHAPE_BYTES: usize = 16;
/// Bytes of a range of chunks.
const EXTENT_BYTES: usize = 8;
/// The most dimensions of an array.
pub(super) const MAX_RANK: usize = 64;
/// The least bytes that an entry of a vector of tables takes, with its table.
pub(super) const LEAST_TABLE_BYTES: usize = 8;

/// The name of a node's document.
pub(super) const DOCUMENT: &str = "zarr.json";
/// What the keys of chunks begin with, below their array.
pub(super) const CHUNKS: &str = "c";

/// The hierarchy at one commit.
#[derive(Debug)]
pub(super) struct RepositorySnapshot {
    pub(super) id: ObjectId,
    pub(super) parent: Option<ObjectId>,
    pub(super) time: u64,
    pub(super) message: Box<str>,
    opened: Opened,
    /// Sorted by path.
    nodes: Vec<NodeEntry>,
    /// Sorted by key.
    keys: Vec<KeyEntry>,
}

#[derive(Clone, Debug)]
struct NodeEntry {
    /// Where the path is, without its first slash.
    path: Range<u32>,
    /// Where the table of the node is.
    table: u32,
    is_array: bool,
    /// Whether another node has this path.
    has_twin: bool,
}

/// A document, or all chunks of an array, in the order of keys.
#[derive(Clone, Copy, Debug)]
struct KeyEntry {
    node: u32,
    is_chunks: bool,
}

/// A node of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeOf<'a> {
    /// Its path, as keys begin.
    pub(super) path: &'a str,
    table: FlatTable<'a>,
    pub(super) is_array: bool,
    /// Whether another node has this path: then neither is served, and it is unknown whether it is an array.
    pub(super) has_twin: bool,
}

/// A manifest of an array, and the chunks that it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct ManifestOf<'a> {
    pub(super) id: ObjectId,
    extents: Vector<'a>,
}

/// The keys at a place in the order of keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeysOf<'a> {
    /// The document of a node.
    Document(NodeOf<'a>),
    /// The chunks of an array.
    Chunks(NodeOf<'a>),
}

impl RepositorySnapshot {
    /// Parses the file of a snapshot.
    pub(super) fn parse(
        file: &Bytes,
        id: ObjectId,
        budget: &ContainerBudget,
    ) -> Result<Self, ReferenceError> {
        let mut opened = file::open(file, FileKind::Snapshot, budget)?;
        let bytes = opened.bytes.clone();
        let root = FlatTable::root(&bytes)?;
        if root.fixed(field::ID)? != Some(id.0) {
            return Err(ReferenceError::Repository("a snapshot has another id than its name says"));
        }
        let nodes = root.vector_of_tables(field::NODES)?.ok_or(Malformed)?;
        let message = root.text(field::MESSAGE)?.ok_or(Malformed)?;
        let index = nodes.len().saturating_mul(size_of::<NodeEntry>() + 2 * size_of::<KeyEntry>());
        opened.reserved.resize((bytes.len() + message.len()).saturating_add(index) as u64)?;
        let mut entries = Vec::with_capacity(nodes.len());
        let mut walked = 0_usize;
        for table in nodes.tables() {
            let entry = NodeEntry::of(&bytes, table?, &mut walked)?;
            if walked > bytes.len() / LEAST_TABLE_BYTES {
                return Err(ReferenceError::Repository("a snapshot has one manifest in many places"));
            }
            entries.push(entry);
        }
        let mut parsed = Self {
            id,
            parent: root.fixed(field::PARENT)?.map(ObjectId),
            time: root.u64(field::TIME)?,
            message: message.into(),
            opened,
            nodes: entries,
            keys: Vec::new(),
        };
        parsed.sort()?;
        Ok(parsed)
    }

    /// Sorts nodes by path, and what has keys by key.
    fn sort(&mut self) -> Result<(), ReferenceError> {
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.sort_unstable_by(|one, two| self.path(one).cmp(self.path(two)));
        // Icechunk itself commits such snapshots, where two sessions overwrite a node and one is rebased.
        nodes.dedup_by(|twin, kept| {
            let is_twin = self.path(twin) == self.path(kept);
            if is_twin {
                (kept.has_twin, kept.is_array) = (true, false);
            }
            is_twin
        });
        self.nodes = nodes;
        let mut keys = Vec::with_capacity(self.nodes.len().saturating_mul(2));
        for (index, entry) in self.nodes.iter().enumerate() {
            let node = u32::try_from(index).map_err(|_many| Malformed)?;
            keys.push(KeyEntry { node, is_chunks: false });
            if entry.is_array {
                keys.push(KeyEntry { node, is_chunks: true });
            }
        }
        keys.sort_unstable_by(|one, two| self.order(*one, *two));
        self.keys = keys;
        Ok(())
    }

    fn path(&self, entry: &NodeEntry) -> &str {
        let range = usize::try_from(entry.path.start).ok().zip(usize::try_from(entry.path.end).ok());
        let bytes = range.and_then(|(start, end)| self.opened.bytes.get(start..end)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The order of two keys. Byte by byte, long paths that are alike would take long.
    fn order(&self, one: KeyEntry, two: KeyEntry) -> Ordering {
        let path = |key: KeyEntry| self.entry(key.node).map_or("", |node| self.path(node)).as_bytes();
        let (left, right) = (path(one), path(two));
        let shared = left.len().min(right.len());
        match left.get(..shared).cmp(&right.get(..shared)) {
            Ordering::Equal => self.bytes_of(one).skip(shared).cmp(self.bytes_of(two).skip(shared)),
            order => order,
        }
    }

    /// The bytes of a key.
    fn bytes_of(&self, entry: KeyEntry) -> impl Iterator<Item = u8> {
        let path = self.entry(entry.node).map_or("", |node| self.path(node));
        let name = if entry.is_chunks { CHUNKS } else { DOCUMENT };
        let slash = if path.is_empty() { "" } else { "/" };
        path.bytes().chain(slash.bytes()).chain(name.bytes())
    }

    fn entry(&self, node: u32) -> Option<&NodeEntry> {
        self.nodes.get(usize::try_from(node).ok()?)
    }

    fn node_of(&self, entry: &NodeEntry) -> Option<NodeOf<'_>> {
        let table = FlatTable::at(&self.opened.bytes, usize::try_from(entry.table).ok()?).ok()?;
        Some(NodeOf { path: self.path(entry), table, is_array: entry.is_array, has_twin: entry.has_twin })
    }

    /// The node at a path.
    pub(super) fn node(&self, path: &str) -> Option<NodeOf<'_>> {
        let at = self.nodes.binary_search_by(|entry| self.path(entry).cmp(path)).ok()?;
        self.node_of(self.nodes.get(at)?)
    }

    /// The bytes of a node's document.
    pub(super) fn document(&self, node: &NodeOf<'_>) -> Bytes {
        let bytes = node.table.bytes(node::DOCUMENT).ok().flatten().unwrap_or_default();
        self.opened.bytes.slice_ref(bytes)
    }

    /// The place, in the order of keys, of the first key that is not before a text.
    pub(super) fn first_from(&self, text: &str) -> usize {
        self.keys.partition_point(|entry| self.bytes_of(*entry).cmp(text.bytes()) == Ordering::Less)
    }

    /// The keys at a place.
    pub(super) fn keys_at(&self, at: usize) -> Option<KeysOf<'_>> {
        let entry = self.keys.get(at)?;
        let node = self.node_of(self.entry(entry.node)?)?;
        Some(if entry.is_chunks { KeysOf::Chunks(node) } else { KeysOf::Document(node) })
    }
}

impl NodeEntry {
    /// The entry of a table, everything of which is read once. Adds the manifests that it names to `walked`.
    fn of(bytes: &[u8], table: FlatTable<'_>, walked: &mut usize) -> Result<Self, ReferenceError> {
        let path = table.vector(node::PATH, 1)?.ok_or(Malformed)?;
        let text = table.text(node::PATH)?.ok_or(Malformed)?;
        let relative = text.strip_prefix('/').ok_or(Malformed)?;
        if !relative.is_empty() && StoreKey::parse(&format!("{relative}/{DOCUMENT}")).is_err() {
            return Err(ReferenceError::Repository("a node has a path that is none of a store"));
        }
        let place = |at: usize| u32::try_from(at).map_err(|_narrow| Malformed);
        let end = path.place() + 4 + text.len();
        let path = place(end - relative.len())?..place(end)?;
        table.fixed::<8>(node::ID)?.ok_or(Malformed)?;
        table.bytes(node::DOCUMENT)?.ok_or(Malformed)?;
        let is_array = match table.u8(node::KIND)? {
            ARRAY => true,
            GROUP => false,
            _ => return Err(ReferenceError::Repository("a node is neither an array nor a group")),
        };
        let node = NodeOf { path: relative, table, is_array, has_twin: false };
        if is_array {
            let rank = node.rank()?;
            if rank > MAX_RANK {
                return Err(ReferenceError::Repository("an array has more than 64 dimensions"));
            }
            let manifests = node.manifests()?;
            *walked = walked.saturating_add(manifests.len());
            if *walked <= bytes.len() / LEAST_TABLE_BYTES {
                for at in 0..manifests.len() {
                    if ManifestOf::of(manifests, at)?.extents.len() != rank {
                        return Err(Malformed.into());
                    }
                }
            }
        }
        Ok(Self { path, table: place(table.place())?, is_array, has_twin: false })
    }
}

impl<'a> NodeOf<'a> {
    /// The node's id.
    pub(super) fn id(&self) -> Result<StoredNodeId, Malformed> {
        self.table.fixed(node::ID)?.map(StoredNodeId).ok_or(Malformed)
    }

    fn data(&self) -> Result<FlatTable<'a>, Malformed> {
        self.table.table(node::DATA)?.ok_or(Malformed)
    }

    /// How many dimensions the array has.
    pub(super) fn rank(&self) -> Result<usize, Malformed> {
        let data = self.data()?;
        match data.vector_of_tables(array::SHAPE_V2)? {
            Some(shape) => Ok(shape.len()),
            None => Ok(data.vector(array::SHAPE, SHAPE_BYTES)?.ok_or(Malformed)?.len()),
        }
    }

    /// How many dimensions the node has, if it is an array.
    pub(super) fn rank_if_array(&self) -> Option<usize> {
        self.is_array.then(|| self.rank().ok()).flatten()
    }

    fn manifests(&self) -> Result<Vector<'a>, Malformed> {
        self.data()?.vector_of_tables(array::MANIFESTS)?.ok_or(Malformed)
    }

    /// The manifest of the array at a place among them.
    pub(super) fn manifest_at(&self, at: usize) -> Result<ManifestOf<'a>, Malformed> {
        ManifestOf::of(self.manifests()?, at)
    }

    /// The manifests of the array.
    pub(super) fn all_manifests(&self) -> impl Iterator<Item = Result<ManifestOf<'a>, Malformed>> {
        let manifests = self.manifests();
        let count = manifests.map_or(0, |manifests| manifests.len());
        (0..count).map(move |at| ManifestOf::of(manifests?, at))
    }
}

impl<'a> ManifestOf<'a> {
    fn of(manifests: Vector<'a>, at: usize) -> Result<Self, Malformed> {
        let table = manifests.table(at)?;
        let id = ObjectId(table.fixed(0)?.ok_or(Malformed)?);
        Ok(Self { id, extents: table.vector(1, EXTENT_BYTES)?.ok_or(Malformed)? })
    }

    /// Whether the manifest is the one for a chunk.
    pub(super) fn has(&self, chunk: &[u32]) -> Result<bool, Malformed> {
        for (at, place) in chunk.iter().enumerate() {
            let [from, to] = halves(self.extents.fixed(at)?);
            if !(from..to).contains(place) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Two integers of 4 bytes.
fn halves(bytes: [u8; EXTENT_BYTES]) -> [u32; 2] {
    let half =
        |at: usize| bytes.get(at..at + 4).and_then(|half| half.try_into().ok()).map_or(0, u32::from_le_bytes);
    [half(0), half(4)]
}
