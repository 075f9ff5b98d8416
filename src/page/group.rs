//! The page of a group: as xarray prints a dataset, or as an image, a plate or a list of nodes.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::array_tabs::documents;
use super::attributes;
use super::child_row::{ArrayRow, ChildRow, kind_of, row};
use super::facts::{ShownArray, bytes_text, count_text, cut, name, shape_text};
use super::label_layer::LabelLayer;
use super::layout::{Head, Site, page};
use super::node_page::{NodeLinks, Place, tree};
use super::ome::{self, Plate, ShownImage};
use super::state::{PageState, join};
use super::thumbnail;
use super::vectors;
use super::view::{ArrayView, Cost};
use super::viewed_array::{Level, SHARED_PICTURE, ViewedArray, ViewedImage};
use super::viewer::viewer;
use crate::metadata::Attributes;

/// Side of the smallest level that fills the picture of a page, in pixels.
const PICTURE_SIDE: u64 = 512;

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
    /// The label images of the image that it is.
    pub labels: Vec<LabelLayer>,
    /// Whether it is a store in Zarr Vector Format: the path of its description.
    pub vectors: Option<String>,
    /// What the URL says.
    pub state: PageState,
}

impl GroupPage {
    /// The page as HTML. For long attributes this takes time: call it on the compute pool.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let attributes = self.attributes.as_ref().map(Attributes::object).unwrap_or_default();
        let title = self.place.name();
        let image = ShownImage::of(&attributes).filter(|_| !self.levels.is_empty());
        let rows: Vec<ArrayRow<'_>> = self.children.iter().flatten().filter_map(row).collect();
        let is_level = |row: &ArrayRow<'_>| {
            image.is_some() && self.levels.iter().any(|level| level.item.href == row.child.item.href)
        };
        let others: Vec<&ArrayRow<'_>> = rows.iter().filter(|row| !is_level(row)).collect();
        let groups: Vec<&ChildRow> =
            self.children.iter().flatten().filter(|child| child.array.is_none()).collect();
        let text = attributes.get("title").or(attributes.get("description")).and_then(Value::as_str);
        let body = html! {
            div.columns {
                (tree(&self.place))
                main #content {
                    div.heading {
                        h1 { bdi { (title) } }
                        p.summary { (self.summary(&attributes, image.as_ref(), &rows, &groups)) }
                        @if let Some(text) = text { p.muted { bdi { (cut(text, 300)) } } }
                    }
                    @if let Some(image) = &image { (self.image(image, &attributes, &title)) }
                    @if let Some(store) = &self.vectors { (vectors::section(store, &self.place.links.view)) }
                    @if let Some(plate) = Plate::of(&attributes) { (self.plate(&plate)) }
                    (self.related(&attributes))
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
        // An image has a picture of its own; that of another group is the one of its first variable with a picture.
        let of_first = || others.iter().find_map(|row| thumbnail::of_array(row, SHARED_PICTURE));
        let own = || join(&self.place.links.image, [("size", SHARED_PICTURE)].into_iter());
        let head = Head {
            title: &format!("{title} – {}", name(&self.place.mount)),
            description: text.map(|text| cut(text, 300)),
            picture: image.is_some().then(own).or_else(of_first),
            crumbs: &self.place.crumbs,
            has_viewer: image.is_some(),
        };
        page(site, &head, &body)
    }

    fn summary(
        &self,
        attributes: &Map<String, Value>,
        image: Option<&ShownImage>,
        rows: &[ArrayRow<'_>],
        groups: &[&ChildRow],
    ) -> Markup {
        let bytes: u128 = rows.iter().map(|row| row.facts.bytes()).fold(0, u128::saturating_add);
        let kind = if image.is_some() {
            "OME image"
        } else if attributes.contains_key("plate")
            || attributes.get("ome").is_some_and(|ome| ome.get("plate").is_some())
        {
            "OME plate"
        } else if self.vectors.is_some() {
            "vectors (ZVF)"
        } else if self.attributes.is_none() {
            "folder"
        } else if rows.iter().any(ArrayRow::is_coordinate) {
            "dataset"
        } else {
            "group"
        };
        html! {
            (kind)
            @if let Some(version) = image.and_then(|image| image.version.as_ref()) { " " (version) }
            @if !rows.is_empty() { " · " (rows.len()) (if rows.len() == 1 { " array, " } else { " arrays, " }) (bytes_text(bytes)) }
            @if !groups.is_empty() { " · " (groups.len()) (if groups.len() == 1 { " group" } else { " groups" }) }
            @if self.attributes.is_some() { " · Zarr v" (self.zarr_format) }
            @if self.is_consolidated { " · consolidated" }
        }
    }

    /// The picture of an image, from its levels.
    fn image(&self, image: &ShownImage, attributes: &Map<String, Value>, title: &str) -> Markup {
        let level = |child: &ChildRow| {
            let row = row(child)?;
            Some(Level {
                name: child.item.name.clone(),
                links: child.links.clone(),
                facts: named(row.facts, image),
            })
        };
        let levels: Vec<Level> = self.levels.iter().filter_map(level).collect();
        let array_of = |at: usize| self.levels.get(at).and_then(row).and_then(|row| row.array);
        let Some((finest, array)) = levels.first().zip(array_of(0)) else { return html! {} };
        let channels = channels_of(image, &finest.facts);
        let view = ArrayView::of_image(&self.state, &finest.facts, None, channels);
        // The picture is read from the coarsest level that still fills it.
        let side = |level: &Level| level.facts.shape.iter().rev().take(2).copied().max().unwrap_or_default();
        let shown = levels.iter().rposition(|level| side(level) >= PICTURE_SIDE).unwrap_or(0);
        let cost = levels.get(shown).zip(array_of(shown)).map(|(level, array)| {
            let subset = view.scaled(&finest.facts.shape, &level.facts.shape);
            Cost::of(&subset, &level.facts, array)
        });
        let Some(cost) = cost else { return html! {} };
        // The page of an image is about the image; elements are those of its finest level.
        let links = NodeLinks {
            view: self.place.links.view.clone(),
            image: self.place.links.image.clone(),
            legend: self.place.links.legend.clone(),
            ..finest.links.clone()
        };
        let viewed = ViewedArray {
            facts: &finest.facts,
            array: Some(array),
            view: &view,
            state: &self.state,
            links: &links,
            attributes,
            coordinates: &[],
            image: Some(ViewedImage { image, levels: &levels, labels: &self.labels, cost }),
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
                            th scope="row" { bdi { (name(&axis.name)) } }
                            td { bdi { (name(&axis.kind)) } }
                            td { @if let Some(scale) = axis.scale { (scale) " " bdi { (axis.unit.as_deref().unwrap_or_default()) } } }
                        }
                    }
                }
            }
            }
        }
    }

    /// The wells of a plate, by row and column.
    fn plate(&self, plate: &Plate) -> Markup {
        let at = |path: &str, links: &str| format!("{}{}", slashed(links), path);
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
                                        @if let Some(path) = plate.well(r, c).and_then(plain_path) {
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
    fn related(&self, attributes: &Map<String, Value>) -> Markup {
        let lists = [("Labels", ome::labels(attributes)), ("Fields", ome::fields(attributes))];
        html! {
            @for (title, names) in lists {
                @if !names.is_empty() {
                    h2 { (title) }
                    ul.nodes {
                        @for path in names.iter().filter_map(|name| plain_path(name)) {
                            li { a.group href=(format!("{}{path}", slashed(&self.place.links.view))) { bdi { (name(&path)) } } }
                        }
                    }
                }
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
                        @if let Some(picture) = thumbnail::of(child) { (thumbnail::small(&picture)) }
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

/// The dimension of the channels that an image describes, if it has several.
fn channels_of(image: &ShownImage, facts: &ShownArray) -> Option<usize> {
    let dim = image.axes.iter().position(|axis| axis.kind == "channel");
    let dim = dim.or_else(|| facts.names.iter().position(|name| name == "c"))?;
    (!image.channels.is_empty() && *facts.shape.get(dim)? > 1).then_some(dim)
}

/// The facts about a level, with the names that the image gives its axes.
fn named(mut facts: ShownArray, image: &ShownImage) -> ShownArray {
    if image.axes.len() == facts.names.len() {
        for (dim, axis) in image.axes.iter().enumerate() {
            if !facts.is_named[dim] && !axis.name.is_empty() {
                facts.names[dim] = name(&axis.name);
            }
        }
    }
    facts
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
                @if let Some(picture) = thumbnail::of_array(row, thumbnail::SIDE) { (thumbnail::small(&picture)) }
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
