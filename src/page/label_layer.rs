//! [`LabelLayer`]: a label image that belongs to an image, and what the viewer is given of it.

use serde_json::{Value, json};

use super::child_row::{ArrayRow, ChildRow, row};
use super::facts::name;
use super::node_page::NodeLinks;

/// Most colours of labels that the viewer is given.
const MOST_COLORS: usize = 4096;

/// A label image that belongs to an image.
#[derive(Clone, Debug)]
pub struct LabelLayer {
    /// Its name, which the URL of a page has.
    pub name: String,
    /// Its resources.
    pub links: NodeLinks,
    /// The names of its axes.
    pub axes: Vec<Option<String>>,
    /// Labels with colours of their own: red, green, blue and opacity.
    pub colors: Vec<(i64, [u8; 4])>,
    /// Its levels, opened, the finest first.
    pub levels: Vec<ChildRow>,
}

impl LabelLayer {
    /// What the viewer is given; `None` if its elements cannot be read.
    pub(super) fn config(&self) -> Option<Value> {
        let levels: Vec<_> = self.levels.iter().filter_map(row).collect();
        let first = &levels.first()?.facts;
        let level = |row: &ArrayRow<'_>| {
            json!({
                "name": row.child.item.name, "data": row.child.links.data, "image": row.child.links.image,
                "shape": row.facts.shape, "chunk": row.facts.decoded_shape,
            })
        };
        let names = first.names.iter().enumerate().map(|(dim, own)| {
            let axis = self.axes.get(dim).and_then(|axis| axis.as_deref());
            axis.map_or_else(|| own.clone(), name)
        });
        let colors =
            self.colors.iter().take(MOST_COLORS).map(|(label, [r, g, b, a])| json!([label, r, g, b, a]));
        Some(json!({
            "name": self.name, "levels": levels.iter().map(level).collect::<Value>(), "names": names.collect::<Vec<_>>(),
            "type": first.type_name, "itemBytes": first.item_bytes, "colors": colors.collect::<Value>(),
        }))
    }
}
