//! The page of a group: as xarray prints a dataset, or as an image, a plate or a list of nodes.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::array_tabs::documents;
use super::attributes;
use super::child_row::{ArrayRow, ChildRow, kind_of, row};
use super::cost::Cost;
use super::extent::extent;
use super::facts::{ShownArray, bytes_text, count_text, cut, name, shape_text};
use super::group_snippets::{GroupUse, snippets};
use super::label_layer::LabelLayer;
use super::layout::{Head, Site, page};
use super::node_page::{NodeLinks, Place, tree, version};
use super::state::{PageState, below, join};
use super::thumbnail;
use super::vectors;
use super::view::ArrayView;
use super::viewed_array::{Level, SHARED_PICTURE, ViewedArray, ViewedImage};
use super::viewer::viewer;
use super::warning::{PageWarning, layout_warnings, silence};
use crate::conventions::{OmeImage, OmeNode, PlateSummary, has_categories};
use crate::metadata::{Attributes, NodeKind};

/// Longer side of the picture of a field or a label image, in pixels.
const FIELD_SIDE: &str = "128";
/// Side of the smallest level that fills the picture of a page, in pixels.
const PICTURE_SIDE: u64 = 512;

/// Most wells that the picture of a plate shows.
const MOST_PICTURED: u64 = 400;
/// Longer side of the picture of a plate without scripts, in pixels.
const PLATE_SIDE: &str = "960";

/// Most rows, and most columns, of a plate that are shown.
const MOST_SIDE: usize = 64;

/// The page of a group, or of a folder without a document.
#[derive(Clone, Debug)]
pub struct GroupPage {
    /// Where it is.
    pub place: Place,
    /// Its attributes; `None` for a folder.
    pub attributes: Option<Attributes>,
    /// What it is in OME-Zarr, with the version, if its attributes say.
    pub ome: Option<(OmeNode, Option<String>)>,
    /// The version of its format.
    pub zarr_format: u8,
    /// Whether consolidated metadata is stored with it.
    pub is_consolidated: bool,
    /// The nodes below it that were opened; `None` if they cannot be listed.
    pub children: Option<Vec<ChildRow>>,
    /// The levels of the image that it is, opened, in their order.
    pub levels: Vec<ChildRow>,
    /// The paths of the wells that it lists as a plate, and that are not there.
    pub missing_wells: BTreeSet<String>,
    /// The label images of the image that it is.
    pub labels: Vec<LabelLayer>,
    /// Whether it is a store in Zarr Vector Format: the path of its description.
    pub vectors: Option<String>,
    /// What makes it hard to read or view, and what helps.
    pub warnings: Vec<PageWarning>,
    /// What the storage did not answer, as a sentence.
    pub silence: Option<&'static str>,
    /// What the URL says.
    pub state: PageState,
}

impl GroupPage {
    /// The page as HTML. For long attributes this takes time: call it on the compute pool.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let attributes = self.attributes.as_ref().map(Attributes::object).unwrap_or_default();
        let title = self.place.name();
        let ome = self.ome.as_ref().map(|(node, _)| node);
        let image = match ome {
            Some(OmeNode::Image(image)) if !self.levels.is_empty() => Some(image),
            _ => None,
        };
        let rows: Vec<ArrayRow<'_>> = self.children.iter().flatten().filter_map(row).collect();
        let is_level = |row: &ArrayRow<'_>| {
            image.is_some() && self.levels.iter().any(|level| level.item.href == row.child.item.href)
        };
        let others: Vec<&ArrayRow<'_>> = rows.iter().filter(|row| !is_level(row)).collect();
        let groups = self.children.iter().flatten().filter(|child| child.array.is_none());
        // What a plate or a well has is shown as pictures.
        let groups = groups.filter(|child| !is_pictured(ome, &child.item.name));
        let (groups, others_below): (Vec<&ChildRow>, Vec<&ChildRow>) =
            groups.partition(|child| child.item.kind == Some(NodeKind::Group));
        let text = attributes.get("title").or(attributes.get("description")).and_then(Value::as_str);
        let body = html! {
            div.columns {
                (tree(&self.place))
                main #content {
                    div.heading {
                        h1 { bdi { (title) } }
                        p.summary { (self.summary(&rows, &groups)) }
                        (version(&self.place))
                        @if let Some(text) = text { p.muted { bdi { (cut(text, 300)) } } }
                    }
                    (silence(self.silence))
                    (layout_warnings(&self.warnings))
                    @if let Some(image) = image { (self.image(image, &attributes, &title)) }
                    @if let Some(store) = &self.vectors { (vectors::section(store, &self.place.links.view)) }
                    @if let Some(OmeNode::Plate(plate)) = ome { (self.plate(plate)) }
                    (self.related(ome))
                    (dataset(&others))
                    (list_of_groups("Groups", &groups))
                    (list_of_groups(if self.attributes.is_none() { "Folders" } else { "Not readable" }, &others_below))
                    @if self.children.is_none() {
                        p.muted { "What is below this group cannot be listed." }
                    } @else if self.children.as_ref().is_some_and(Vec::is_empty) && !has_images(ome) {
                        p.muted { "There are no arrays or groups below this group." }
                    }
                    @if self.attributes.is_some() && self.vectors.is_none() {
                        (snippets(use_of(ome, &rows, &groups), site, &self.place))
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
            picture: (image.is_some() || has_images(ome)).then(own).or_else(of_first),
            crumbs: &self.place.crumbs,
        };
        page(site, &head, &body)
    }

    /// What the group is, in a line.
    fn summary(&self, rows: &[ArrayRow<'_>], groups: &[&ChildRow]) -> Markup {
        let bytes: u128 = rows.iter().map(|row| row.facts.bytes()).fold(0, u128::saturating_add);
        let of_ome = self.ome.as_ref().map(|(node, version)| (kind_of_ome(node), version));
        let (kind, version) = if let Some((kind, version)) = of_ome.filter(|_| self.vectors.is_none()) {
            (kind, version.as_deref())
        } else if self.vectors.is_some() {
            ("vectors (ZVF)", None)
        } else if self.attributes.is_none() {
            ("folder", None)
        } else if rows.iter().any(ArrayRow::is_coordinate) {
            ("dataset", None)
        } else {
            ("group", None)
        };
        html! {
            (kind)
            @if let Some(version) = version { " " bdi { (cut(version, 20)) } }
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
        let array_of = |at: usize| self.levels.get(at).and_then(row).and_then(|row| row.array);
        let Some((finest, array)) = levels.first().zip(array_of(0)) else { return html! {} };
        let channels = channels_of(image, &finest.facts);
        let view = ArrayView::of_image(&self.state, &finest.facts, None, channels);
        // The picture is read from the coarsest level that still fills it.
        let side = |level: &Level| level.facts.shape.iter().rev().take(2).copied().max().unwrap_or_default();
        let shown = levels.iter().rposition(|level| side(level) >= PICTURE_SIDE).unwrap_or(0);
        let cost = levels.get(shown).zip(array_of(shown)).map(|(level, array)| {
            let subset = view.scaled(&finest.facts.shape, &level.facts.shape);
            Cost::of(&subset, level.facts.item_bytes, array)
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
            has_categories: has_categories(&array.metadata().attributes, Some(image)),
            has_tables: true,
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
                            th scope="row" { bdi { (axis.name.as_deref().map(name).unwrap_or_default()) } }
                            td { bdi { (axis.kind.as_deref().map(name).unwrap_or_default()) } }
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
        let wells: BTreeMap<(u64, u64), &str> =
            plate.wells.iter().map(|(path, row, column)| ((*row, *column), path.as_str())).collect();
        let (rows, columns) = (plate.rows.iter().take(MOST_SIDE), plate.columns.iter().take(MOST_SIDE));
        let side = well_side(plate.columns.len());
        let source = |path: &str| join(&below(&self.place.links.image, path), [("size", side)].into_iter());
        let with_images = plate.declared_wells.saturating_sub(self.missing_wells.len() as u64);
        let legend = join(&self.place.links.legend, [("format", "json")].into_iter());
        let is_there = |path: &&str| !self.missing_wells.contains(*path);
        html! {
            @if let Some(text) = &plate.name { p { bdi { (cut(text, 200)) } } }
            // Pictures of single wells would each have a range of their own.
            @if (1..=MOST_PICTURED).contains(&plate.declared_wells) {
                noscript {
                    img.plate-picture src=(join(&self.place.links.image, [("size", PLATE_SIDE)].into_iter()))
                        alt="The first images of all wells, in one range of numbers";
                }
            }
            div.scroll {
                table.plate data-legend=(legend) {
                    caption { (plate.rows.len()) " × " (plate.columns.len()) " wells, " (with_images) " with images" }
                    thead { tr { td {} @for column in columns.clone() { th scope="col" { bdi { (cut(column, 8)) } } } } }
                    tbody {
                        @for (r, row) in (0..).zip(rows) {
                            tr {
                                th scope="row" { bdi { (cut(row, 8)) } }
                                @for (c, column) in (0..).zip(columns.clone()) {
                                    td {
                                        @if let Some(path) = wells.get(&(r, c)).copied().filter(is_there).and_then(plain_path) {
                                            a.well href=(below(&self.place.links.view, &path)) aria-label=(format!("well {}{}", cut(row, 8), cut(column, 8))) {
                                                // A script gives all pictures the range of the plate before it loads them.
                                                img.js-only loading="lazy" alt="" width=(side) height=(side) data-src=(source(&path));
                                                span.no-js { (cut(row, 8)) (cut(column, 8)) }
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

    /// Label images, fields of a well, and images of a collection, by their paths in the attributes.
    fn related(&self, ome: Option<&OmeNode>) -> Markup {
        let (title, paths) = match ome {
            Some(OmeNode::LabelList(labels)) => ("Labels", labels.as_slice()),
            Some(OmeNode::Well(fields)) => ("Fields", fields.as_slice()),
            Some(OmeNode::Collection(images)) => ("Images", images.as_slice()),
            _ => ("", [].as_slice()),
        };
        let shown: Vec<(&String, String)> =
            paths.iter().filter_map(|path| Some((path, plain_path(path)?))).collect();
        html! {
            @if !shown.is_empty() {
                h2 { (title) }
                ul.fields {
                    @for (path, plain) in &shown {
                        li {
                            a.group href=(below(&self.place.links.view, plain)) {
                                img.field loading="lazy"
                                    src=(join(&below(&self.place.links.image, plain), [("size", FIELD_SIDE)].into_iter()))
                                    alt="" width="128" height="128";
                                bdi { (name(path)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether the page of a group shows a group in it as a picture: a row of a plate, a field of a well, or a label image.
fn is_pictured(node: Option<&OmeNode>, name: &str) -> bool {
    match node {
        Some(OmeNode::Plate(plate)) => plate.rows.iter().any(|row| row == name),
        Some(OmeNode::Well(names) | OmeNode::LabelList(names)) => {
            names.iter().any(|known| known == name && plain_path(known).is_some())
        }
        _ => false,
    }
}

/// What a group is to programs.
fn use_of(node: Option<&OmeNode>, rows: &[ArrayRow<'_>], groups: &[&ChildRow]) -> GroupUse {
    match node {
        Some(OmeNode::Image(image)) if image.is_labels => GroupUse::LabelImage,
        Some(OmeNode::Image(_)) => GroupUse::Image,
        None if rows.iter().any(ArrayRow::is_coordinate) => GroupUse::Dataset,
        None if rows.is_empty() && groups.iter().any(|group| group.is_plain_group()) => GroupUse::Tree,
        Some(_) | None => GroupUse::Group,
    }
}

/// Whether a group has a picture of the images in it.
fn has_images(node: Option<&OmeNode>) -> bool {
    match node {
        Some(OmeNode::Plate(plate)) => !plate.wells.is_empty(),
        Some(OmeNode::Well(images)) => !images.is_empty(),
        Some(OmeNode::Collection(_)) => true,
        _ => false,
    }
}

/// The side of the picture of a well in pixels, so that a row of them fits on a page.
fn well_side(columns: usize) -> &'static str {
    match columns {
        0..=8 => "96",
        9..=12 => "64",
        13..=24 => "40",
        _ => "24",
    }
}

/// What a group is in OME-Zarr, in words.
fn kind_of_ome(node: &OmeNode) -> &'static str {
    match node {
        OmeNode::Image(image) if image.is_labels => "OME labels",
        OmeNode::Image(_) => "OME image",
        OmeNode::LabelList(_) => "list of OME labels",
        OmeNode::Plate(_) => "OME plate",
        OmeNode::Well(_) => "OME well",
        OmeNode::Collection(_) => "collection of OME images",
        OmeNode::Scene => "OME scene",
    }
}

/// Nodes below a group that are no arrays.
fn list_of_groups(title: &str, groups: &[&ChildRow]) -> Markup {
    html! {
        @if !groups.is_empty() {
            h2 { (title) }
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
fn channels_of(image: &OmeImage, facts: &ShownArray) -> Option<usize> {
    let dim = image.axes.iter().position(|axis| axis.kind.as_deref() == Some("channel"));
    let dim = dim.or_else(|| facts.names.iter().position(|name| name == "c"))?;
    (!image.channels.is_empty() && *facts.shape.get(dim)? > 1).then_some(dim)
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
    // Variables first: their dimensions are in the order of the data.
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse(row.facts.shape.len()));
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
                @if let Some(text) = child.extent.as_ref().and_then(extent) { (text) }
                @if let Some(reason) = &facts.unreadable { span.warn { bdi { (cut(reason, 100)) } } }
            }
        }
    }
}
