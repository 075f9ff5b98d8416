//! The page of a group: as xarray prints a dataset, or as an image, a plate or a list of nodes.

use std::collections::HashMap;
use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::array_tabs::documents;
use super::attributes;
use super::facts::{Drawn, ShownArray, bytes_text, count_text, cut, name, shape_text};
use super::layout::{Site, page};
use super::node_page::{NodeLinks, Place, TreeItem, tree};
use super::state::{PageState, join};
use super::view::{ArrayView, Shown};
use super::viewed_array::{Level, ViewedArray};
use super::viewer::viewer;
use crate::array::Array;
use crate::conventions::{OmeImage, OmeNode, PlateSummary};
use crate::metadata::{ArrayMetadata, Attributes};

/// Decoded bytes of the largest plane that a list shows as a small picture.
const THUMBNAIL_BYTES: u128 = 16 << 20;

/// The metadata of an array, and the array or why it cannot be read.
pub type OpenedArray = (Arc<ArrayMetadata>, Result<Arc<Array>, String>);

/// A node below a group.
#[derive(Clone, Debug)]
pub struct ChildRow {
    /// Its name and page.
    pub item: TreeItem,
    /// Its resources.
    pub links: NodeLinks,
    /// The array; `None` for other nodes.
    pub array: Option<OpenedArray>,
    /// The attributes of a group.
    pub attributes: Option<Attributes>,
}

/// The page of a group, or of a folder without a document.
#[derive(Clone, Debug)]
pub struct GroupPage {
    /// Where it is.
    pub place: Place,
    /// Its attributes; `None` for a folder.
    pub attributes: Option<Attributes>,
    /// The version of its format.
    pub zarr_format: u8,
    /// Whether consolidated metadata is stored with it.
    pub is_consolidated: bool,
    /// The nodes below it that were opened; `None` if they cannot be listed.
    pub children: Option<Vec<ChildRow>>,
    /// The levels of the image that it is, opened, in their order.
    pub levels: Vec<ChildRow>,
    /// Whether it is a store in Zarr Vector Format: the path of its description.
    pub vectors: Option<String>,
    /// What the URL says.
    pub state: PageState,
}

/// An array below a group, with its facts.
struct ArrayRow<'a> {
    child: &'a ChildRow,
    facts: ShownArray,
    array: Option<&'a Array>,
    metadata: &'a ArrayMetadata,
}

impl GroupPage {
    /// The page as HTML. For long attributes this takes time: call it on the compute pool.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let attributes = self.attributes.as_ref().map(Attributes::object).unwrap_or_default();
        let title = self.place.name();
        let (ome, version) = self.attributes.as_ref().and_then(OmeNode::parse).unzip();
        let image = match &ome {
            Some(OmeNode::Image(image)) if !self.levels.is_empty() => Some(image),
            _ => None,
        };
        let rows: Vec<ArrayRow<'_>> = self.children.iter().flatten().filter_map(row).collect();
        let is_level = |row: &ArrayRow<'_>| {
            image.is_some() && self.levels.iter().any(|level| level.item.href == row.child.item.href)
        };
        let others: Vec<&ArrayRow<'_>> = rows.iter().filter(|row| !is_level(row)).collect();
        let groups: Vec<&ChildRow> =
            self.children.iter().flatten().filter(|child| child.array.is_none()).collect();
        let body = html! {
            div.columns {
                (tree(&self.place))
                main #content {
                    div.heading {
                        h1 { bdi { (title) } }
                        p.summary { (self.summary(ome.as_ref(), version.flatten().as_deref(), &rows, &groups)) }
                        @if let Some(text) = attributes.get("title").or(attributes.get("description")).and_then(Value::as_str) {
                            p.muted { bdi { (cut(text, 300)) } }
                        }
                    }
                    @if let Some(image) = image { (self.image(image, &attributes, &title)) }
                    @if let Some(OmeNode::Plate(plate)) = &ome { (self.plate(plate)) }
                    (self.related(ome.as_ref()))
                    (dataset(&others))
                    (list_of_groups(&groups))
                    @if self.children.is_none() {
                        p.muted { "What is below this group cannot be listed." }
                    } @else if rows.is_empty() && groups.is_empty() {
                        p.muted { "There is nothing below this group." }
                    }
                    @if self.attributes.is_some() {
                        section.about {
                            div { h2 { "Attributes" } (attributes::tree(&attributes)) }
                            (documents(&self.place.links, if self.zarr_format == 3 { 3 } else { 0 }))
                        }
                    }
                }
            }
        };
        page(
            site,
            &format!("{title} – {}", name(&self.place.mount)),
            &self.place.crumbs,
            image.is_some(),
            &body,
        )
    }

    fn summary(
        &self,
        ome: Option<&OmeNode>,
        version: Option<&str>,
        rows: &[ArrayRow<'_>],
        groups: &[&ChildRow],
    ) -> Markup {
        let bytes: u128 = rows.iter().map(|row| row.facts.bytes()).fold(0, u128::saturating_add);
        let (kind, version) = match ome {
            Some(OmeNode::Image(_)) if !self.levels.is_empty() => ("OME image", version),
            Some(OmeNode::Plate(_)) => ("OME plate", version),
            _ if self.vectors.is_some() => ("vectors (ZVF)", None),
            _ if self.attributes.is_none() => ("folder", None),
            _ if rows.iter().any(ArrayRow::is_coordinate) => ("dataset", None),
            _ => ("group", None),
        };
        html! {
            (kind)
            @if let Some(version) = version { " " (version) }
            @if !rows.is_empty() { " · " (rows.len()) (if rows.len() == 1 { " array, " } else { " arrays, " }) (bytes_text(bytes)) }
            @if !groups.is_empty() { " · " (groups.len()) (if groups.len() == 1 { " group" } else { " groups" }) }
            @if self.attributes.is_some() { " · Zarr v" (self.zarr_format) }
            @if self.is_consolidated { " · consolidated" }
        }
    }

    /// The picture of an image, from its levels.
    fn image(&self, image: &OmeImage, attributes: &Map<String, Value>, title: &str) -> Markup {
        let level = |child: &ChildRow| {
            let row = row(child)?;
            Some(Level {
                name: child.item.name.clone(),
                links: child.links.clone(),
                facts: named(row.facts, image),
            })
        };
        let levels: Vec<Level> = self.levels.iter().filter_map(level).collect();
        // The coarsest level that still fills the picture.
        let side = |level: &Level| level.facts.shape.iter().rev().take(2).copied().max().unwrap_or_default();
        let shown = levels.iter().rposition(|level| side(level) >= 512).unwrap_or(0);
        let array_of = |at: usize| self.levels.get(at).and_then(row).and_then(|row| row.array);
        let Some((level, array)) = levels.get(shown).zip(array_of(shown)) else { return html! {} };
        let view = ArrayView::of(&self.state, &level.facts, Some(array));
        let links = NodeLinks {
            view: self.place.links.view.clone(),
            legend: self.place.links.legend.clone(),
            ..level.links.clone()
        };
        let viewed = ViewedArray {
            facts: &level.facts,
            array: Some(array),
            view: &view,
            state: &self.state,
            links: &links,
            attributes,
            coordinates: &[],
            image: Some((image, &levels)),
        };
        html! {
            @if let Some(text) = &image.name { p.muted { bdi { (cut(text, 200)) } } }
            (viewer(&viewed, "image", title))
            div.pair {
            table {
                caption { "Levels" }
                thead { tr { th scope="col" { "Level" } th scope="col" { "Shape" } th.number scope="col" { "Size" } th scope="col" { "Chunk" } } }
                tbody {
                    @for level in &levels {
                        tr {
                            th scope="row" { a.array href=(level.links.view) { bdi { (name(&level.name)) } } }
                            td { (shape_text(&level.facts.shape)) }
                            td.number { (bytes_text(level.facts.bytes())) }
                            td { (level.facts.decoded_shape.as_deref().map(shape_text).unwrap_or_default()) }
                        }
                    }
                }
            }
            table {
                caption { "Axes" }
                thead { tr { th scope="col" { "Axis" } th scope="col" { "Type" } th scope="col" { "Pixel" } } }
                tbody {
                    @for axis in &image.axes {
                        tr {
                            th scope="row" { bdi { (name(axis.name.as_deref().unwrap_or_default())) } }
                            td { bdi { (name(axis.kind.as_deref().unwrap_or_default())) } }
                            td { @if let Some(scale) = axis.scale { (scale) " " bdi { (axis.unit.as_deref().unwrap_or_default()) } } }
                        }
                    }
                }
            }
            }
        }
    }

    /// The wells of a plate, by row and column.
    fn plate(&self, plate: &PlateSummary) -> Markup {
        let at = |path: &str, links: &str| format!("{}{}", slashed(links), path);
        let wells: HashMap<(u64, u64), &str> =
            plate.wells.iter().rev().map(|(path, row, column)| ((*row, *column), path.as_str())).collect();
        let well = |row: usize, column: usize| wells.get(&(row as u64, column as u64)).copied();
        html! {
            @if let Some(text) = &plate.name { p { bdi { (cut(text, 200)) } } }
            div.scroll {
                table.plate {
                    caption { (plate.rows.len()) " × " (plate.columns.len()) " wells, " (plate.wells.len()) " with images" }
                    thead { tr { td {} @for column in &plate.columns { th scope="col" { bdi { (cut(column, 8)) } } } } }
                    tbody {
                        @for (r, row) in plate.rows.iter().enumerate() {
                            tr {
                                th scope="row" { bdi { (cut(row, 8)) } }
                                @for c in 0..plate.columns.len() {
                                    td {
                                        @if let Some(path) = well(r, c).and_then(plain_path) {
                                            a.well href=(at(&path, &self.place.links.view)) aria-label=(format!("well {row}{}", plate.columns[c])) {
                                                img loading="lazy" alt="" width="48" height="48"
                                                    src=(join(&at(&path, &self.place.links.image), [("size", "48")].into_iter()));
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Label images, fields of a well, and vectors, by their names in the attributes.
    fn related(&self, ome: Option<&OmeNode>) -> Markup {
        let (title, names) = match ome {
            Some(OmeNode::LabelList(names)) => ("Labels", &names[..]),
            Some(OmeNode::Well(fields)) => ("Fields", &fields[..]),
            _ => ("", &[][..]),
        };
        html! {
            @if !names.is_empty() {
                h2 { (title) }
                ul.nodes {
                    @for path in names.iter().filter_map(|name| plain_path(name)) {
                        li { a.group href=(format!("{}{path}", slashed(&self.place.links.view))) { bdi { (name(&path)) } } }
                    }
                }
            }
            @if let Some(vectors) = &self.vectors {
                p { "Points, lines and other vectors: " a href=(vectors) { "summary (JSON)" } }
            }
        }
    }
}

/// The groups below a group.
fn list_of_groups(groups: &[&ChildRow]) -> Markup {
    html! {
        @if !groups.is_empty() {
            h2 { "Groups" }
            ul.nodes.large {
                @for child in groups {
                    li {
                        a.(child.item.class()) href=(child.item.href) { bdi { (name(&child.item.name)) } }
                        @if let Some(what) = child.attributes.as_ref().and_then(kind_of) { " " span.tag { (what) } }
                    }
                }
            }
        }
    }
}

/// A path with a slash at its end.
fn slashed(path: &str) -> String {
    if path.ends_with('/') { path.to_owned() } else { format!("{path}/") }
}

/// A path below a group as part of a URL, if it is one: names in attributes may be anything.
fn plain_path(path: &str) -> Option<String> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let is_plain = |name: &&str| {
        !matches!(*name, "." | "..")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    };
    (!names.is_empty() && names.iter().all(is_plain)).then(|| names.join("/"))
}

/// What a group is, by names in its attributes.
fn kind_of(attributes: &Attributes) -> Option<&'static str> {
    let has = |name: &str| attributes.contains_key(name);
    if has("multiscales") || has("ome") {
        Some("image")
    } else if has("plate") {
        Some("plate")
    } else if has("zarr_vectors") {
        Some("vectors")
    } else {
        None
    }
}

/// The facts about a level, with the names that the image gives its axes.
fn named(mut facts: ShownArray, image: &OmeImage) -> ShownArray {
    if image.axes.len() == facts.names.len() {
        for (dim, axis) in image.axes.iter().enumerate() {
            if let Some(own) = axis.name.as_deref().filter(|_| !facts.is_named[dim]) {
                facts.names[dim] = name(own);
            }
        }
    }
    facts
}

fn row(child: &ChildRow) -> Option<ArrayRow<'_>> {
    let (metadata, array) = child.array.as_ref()?;
    let bound = array.as_deref();
    let facts = ShownArray::of(metadata, bound.map_err(String::as_str));
    Some(ArrayRow { child, facts, array: bound.ok(), metadata })
}

impl ArrayRow<'_> {
    /// Whether the array holds the coordinates of its only dimension.
    fn is_coordinate(&self) -> bool {
        self.facts.names.len() == 1 && self.facts.is_named[0] && self.facts.names[0] == self.child.item.name
    }

    /// A small picture, where it costs little.
    fn thumbnail(&self) -> Option<String> {
        if self.facts.drawn == Drawn::Text {
            return None;
        }
        let view = ArrayView::default_of(&self.facts, self.array);
        let cost = super::view::Cost::of(&view.subset, &self.facts, self.array?);
        let is_plane = matches!(view.shown, Shown::Plane { .. });
        let slice = view.slice(&self.facts.shape);
        let query = [("slice", slice.as_str()), ("size", "64")];
        (is_plane && cost.bytes <= THUMBNAIL_BYTES && cost.is_small())
            .then(|| join(&self.child.links.image, query.into_iter()))
    }
}

/// The arrays of a group, as xarray prints a dataset.
fn dataset(rows: &[&ArrayRow<'_>]) -> Markup {
    let (coordinates, variables): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_coordinate());
    let is_dataset = !coordinates.is_empty();
    html! {
        @if is_dataset { (dimensions(rows)) }
        @if !rows.is_empty() {
            div.scroll {
                table.arrays {
                    caption.visually-hidden { "Arrays" }
                    thead { tr {
                        th scope="col" { span.visually-hidden { "Picture" } }
                        th scope="col" { "Name" } th scope="col" { "Dimensions" } th scope="col" { "Type" }
                        th.number scope="col" { "Size" } th scope="col" { "Chunk" } th scope="col" { "Description" }
                    } }
                    (arrays("Coordinates", &coordinates))
                    (arrays(if is_dataset { "Data variables" } else { "Arrays" }, &variables))
                }
            }
        }
    }
}

/// The named dimensions of arrays, each with its length in the first array that has it.
fn dimensions(rows: &[&ArrayRow<'_>]) -> Markup {
    let mut dimensions: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        for ((name, &length), is_named) in
            row.facts.names.iter().zip(&row.facts.shape).zip(&row.facts.is_named)
        {
            if *is_named && !dimensions.iter().any(|(known, _)| known == name) {
                dimensions.push((name, length));
            }
        }
    }
    html! {
        p.dimensions {
            strong { "Dimensions" } "  "
            @for (at, (name, length)) in dimensions.iter().take(40).enumerate() {
                (if at == 0 { "" } else { ", " }) bdi { (name) } " " span.muted { (count_text((*length).into())) }
            }
        }
    }
}

fn arrays(title: &str, rows: &[&&ArrayRow<'_>]) -> Markup {
    html! {
        @if !rows.is_empty() {
            tbody {
                tr.section { th colspan="7" scope="rowgroup" { (title) } }
                @for row in rows { (array_row(row)) }
            }
        }
    }
}

fn array_row(row: &ArrayRow<'_>) -> Markup {
    let ArrayRow { child, facts, metadata, .. } = row;
    let described = |name: &str| {
        let text = metadata.attributes.get(name)?;
        text.as_str().map(|text| cut(text, 120))
    };
    let units = described("units");
    html! {
        tr {
            td.thumbnail {
                @if let Some(picture) = row.thumbnail() {
                    img loading="lazy" src=(picture) alt="" width="32" height="32";
                }
            }
            th scope="row" { a.array href=(child.item.href) { bdi { (name(&child.item.name)) } } }
            td {
                @for (at, (name, &length)) in facts.names.iter().zip(&facts.shape).enumerate() {
                    (if at == 0 { "" } else { ", " }) bdi { (name) } " " span.muted { (count_text(length.into())) }
                }
            }
            td { code { (facts.type_name) } }
            td.number { (bytes_text(facts.bytes())) }
            td { (facts.decoded_shape.as_deref().map(shape_text).unwrap_or_default()) }
            td {
                @if let Some(text) = described("long_name").or_else(|| described("standard_name")) { bdi { (text) } }
                @if let Some(units) = units { " " span.muted { "[" bdi { (units) } "]" } }
                @if let Some(reason) = &facts.unreadable { span.warn { bdi { (cut(reason, 100)) } } }
            }
        }
    }
}
