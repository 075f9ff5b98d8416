//! Writes files of repositories, right ones and others: a flatbuffer whose texts may be shared, behind a head.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::store::references::icechunk::file::FileKind;
use crate::store::references::icechunk::id::ObjectId;

/// A field of a table.
#[derive(Clone)]
pub(super) enum FlatField {
    /// It is not set.
    Unset,
    /// Its bytes are in the table.
    Fixed(Vec<u8>),
    /// A table.
    Table(Vec<FlatField>),
    /// A vector of tables.
    Tables(Vec<Vec<FlatField>>),
    /// A vector of items of a size in bytes.
    Items(Vec<u8>, usize),
    /// A vector of bytes, of which there is one for all fields with this number.
    Shared(usize),
}

/// A field with a text, or with bytes.
pub(super) fn text(bytes: impl AsRef<[u8]>) -> FlatField {
    FlatField::Items(bytes.as_ref().to_vec(), 1)
}

pub(super) fn fixed(bytes: impl AsRef<[u8]>) -> FlatField {
    FlatField::Fixed(bytes.as_ref().to_vec())
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap().to_le_bytes());
}

/// Writes at `slot` how far it is from there to the end.
fn lead_here(out: &mut [u8], slot: usize) {
    let distance = u32::try_from(out.len() - slot).unwrap();
    out[slot..slot + 4].copy_from_slice(&distance.to_le_bytes());
}

/// The flatbuffer of a table. Fields with [`FlatField::Shared`] lead to these bytes.
fn flatbuffer(root: Vec<FlatField>, shared: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0; 4];
    let mut left = VecDeque::from([(0, FlatField::Table(root))]);
    let mut leading = vec![Vec::new(); shared.len()];
    while let Some((slot, field)) = left.pop_front() {
        match field {
            FlatField::Unset | FlatField::Fixed(_) => {}
            FlatField::Shared(number) => leading[number].push(slot),
            FlatField::Items(bytes, size) => {
                lead_here(&mut out, slot);
                put_u32(&mut out, bytes.len() / size);
                out.extend_from_slice(&bytes);
            }
            FlatField::Tables(tables) => {
                lead_here(&mut out, slot);
                put_u32(&mut out, tables.len());
                for table in tables {
                    left.push_back((out.len(), FlatField::Table(table)));
                    put_u32(&mut out, 0);
                }
            }
            FlatField::Table(fields) => {
                let list = out.len();
                out.extend_from_slice(&u16::try_from(4 + 2 * fields.len()).unwrap().to_le_bytes());
                out.extend_from_slice(&[0; 2]);
                let mut place = 4_u16;
                for field in &fields {
                    let size = match field {
                        FlatField::Unset => 0,
                        FlatField::Fixed(bytes) => u16::try_from(bytes.len()).unwrap(),
                        _ => 4,
                    };
                    let set = !matches!(field, FlatField::Unset);
                    out.extend_from_slice(&if set { place } else { 0 }.to_le_bytes());
                    place += size;
                }
                lead_here(&mut out, slot);
                let back = out.len() - list;
                put_u32(&mut out, back);
                for field in fields {
                    match field {
                        FlatField::Unset => {}
                        FlatField::Fixed(bytes) => out.extend_from_slice(&bytes),
                        field => {
                            left.push_back((out.len(), field));
                            put_u32(&mut out, 0);
                        }
                    }
                }
            }
        }
    }
    for (bytes, slots) in shared.iter().zip(leading) {
        for slot in slots {
            lead_here(&mut out, slot);
        }
        put_u32(&mut out, bytes.len());
        out.extend_from_slice(bytes);
    }
    out
}

/// A file of a kind with a body.
pub(super) fn file_of(kind: FileKind, compression: u8, body: &[u8]) -> Bytes {
    let head = [kind as u8, compression];
    ["ICE🧊CHUNK".as_bytes(), &[b'w'; 24], &[1], &head, body].concat().into()
}

/// A file that is not compressed.
pub(super) fn file(kind: FileKind, root: Vec<FlatField>, shared: &[Vec<u8>]) -> Bytes {
    file_of(kind, 0, &flatbuffer(root, shared))
}

/// An id for a number.
pub(super) fn id(number: u32) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ObjectId(bytes)
}

/// A node of a snapshot: a group.
pub(super) fn group(path: &str) -> Vec<FlatField> {
    vec![fixed([1; 8]), text(path), text("{}"), fixed([2])]
}

/// An array without dimensions and chunks.
pub(super) fn array(path: &str) -> Vec<FlatField> {
    let data = vec![FlatField::Items(Vec::new(), 16), FlatField::Unset, FlatField::Tables(Vec::new())];
    vec![fixed([1; 8]), text(path), text("{}"), fixed([1]), FlatField::Table(data)]
}

/// The file of a snapshot.
pub(super) fn snapshot(number: u32, parent: Option<u32>, nodes: Vec<Vec<FlatField>>) -> Bytes {
    let parent = parent.map_or(FlatField::Unset, |parent| fixed(id(parent).0));
    let time = fixed(u64::from(number).to_le_bytes());
    file(
        FileKind::Snapshot,
        vec![fixed(id(number).0), parent, FlatField::Tables(nodes), time, text(format!("commit {number}"))],
        &[],
    )
}

/// The file `repo` with a branch `main` and these tags. It lists the snapshots 0 to 9.
pub(super) fn repository(main: u32, tags: &[(&str, u32)]) -> Bytes {
    let named = |(name, number): (&str, u32)| vec![text(name), fixed(number.to_le_bytes())];
    let snapshots = (0..10_u32).map(|number| {
        let parent = i32::try_from(number).unwrap() - 1;
        vec![fixed(id(number).0), fixed(parent.to_le_bytes()), fixed([0; 8]), text("")]
    });
    let root = vec![
        fixed([2]),
        FlatField::Tables(tags.iter().copied().map(named).collect()),
        FlatField::Tables(vec![named(("main", main))]),
        FlatField::Unset,
        FlatField::Tables(snapshots.collect()),
        FlatField::Table(vec![fixed([0])]),
    ];
    file(FileKind::Repository, root, &[])
}

/// The file of a branch or tag of version 1.
pub(super) fn ref_file(number: u32) -> Bytes {
    format!("{{\"snapshot\":\"{}\"}}", id(number)).into()
}
