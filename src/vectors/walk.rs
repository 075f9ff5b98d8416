//! [`EdgeTraversal`]: the rows of an object of the documents' profile, which stores only its first group. The others
//! are found along the edges.

use std::collections::{HashMap, HashSet, VecDeque};

use super::chunk::ChunkVertices;
use super::level::ResolutionLevel;
use super::links::{Link, read_doc_links};
use super::objects::VectorObject;
use super::{Coord, VectorError, format_coord};

/// A row of a chunk.
type RowRef = (Coord, i64);

/// The rows and edges reached from an object's first row.
#[derive(Clone, Debug, Default)]
pub struct EdgeTraversal {
    /// The rows, in breadth-first order.
    pub rows: Vec<RowRef>,
    /// The edges between them.
    pub edges: Vec<Link>,
}

impl EdgeTraversal {
    /// Follows the edges from the first row of an object's first group.
    ///
    /// # Errors
    /// [`VectorError::CorruptManifest`], [`VectorError::Corrupt`].
    pub async fn from_object(level: &ResolutionLevel, object: &VectorObject) -> Result<Self, VectorError> {
        let Some((chunk, fragment)) = object.manifest.fragments().next() else { return Ok(Self::default()) };
        let corrupt = |reason: String| VectorError::CorruptManifest { object: object.id, reason };
        let rows = ChunkVertices::read(level, chunk, true).await?;
        let rows = rows.ok_or_else(|| corrupt(format!("chunk `{}` has no vertices", format_coord(chunk))))?;
        let group = rows.fragments.as_ref().and_then(|groups| groups.get(usize::try_from(fragment).ok()?));
        let first = group.and_then(|group| i64::try_from(group.rows().next()?).ok());
        let first = first.ok_or_else(|| {
            corrupt(format!("group {fragment} of chunk `{}` has no rows", format_coord(chunk)))
        })?;
        let occupied = level.non_empty_chunks().await?.cells;
        let links = read_doc_links(level, &occupied).await?;
        let start = (chunk.to_vec(), first);
        Ok(level.store.context.cpu.run(move || traverse(start, links)).await?)
    }
}

/// The rows that can be reached from `start`, in breadth-first order.
fn traverse(start: RowRef, links: Vec<Link>) -> EdgeTraversal {
    let mut next: HashMap<RowRef, Vec<Link>> = HashMap::new();
    for link in links {
        if let Some(from) = link.endpoints.first() {
            next.entry(from.clone()).or_default().push(link);
        }
    }
    let mut seen = HashSet::from([start.clone()]);
    let (mut walk, mut due) = (EdgeTraversal::default(), VecDeque::from([start]));
    while let Some(place) = due.pop_front() {
        for link in next.remove(&place).unwrap_or_default() {
            for further in link.endpoints.iter().skip(1) {
                if seen.insert(further.clone()) {
                    due.push_back(further.clone());
                }
            }
            walk.edges.push(link);
        }
        walk.rows.push(place);
    }
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traversal_visits_each_row_once_even_in_a_cycle() {
        let link = |from: i64, to: i64| Link { endpoints: vec![(vec![0], from), (vec![0], to)] };
        let walk = traverse((vec![0], 1), vec![link(0, 1), link(1, 2), link(2, 3), link(3, 1), link(7, 8)]);
        assert_eq!(walk.rows.iter().map(|(_, row)| *row).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(walk.edges.len(), 3);
    }
}
