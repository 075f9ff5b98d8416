//! The page of an array.

use std::sync::Arc;

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::array_tabs;
use super::attributes;
use super::cost::PageLimits;
use super::facts::{Drawn, ShownArray, bytes_text, count_text, cut, name, shape_text};
use super::layout::{Head, Site, page};
use super::node_page::{Place, tree, version};
use super::state::PageState;
use super::view::{ArrayView, Shown};
use super::viewed_array::{Coordinate, SHARED_PICTURE, ViewedArray};
use super::viewer::viewer;
use super::warning::{PageWarning, layout_warnings, silence};
use crate::array::Array;
use crate::metadata::{ArrayMetadata, DataType};

/// The page of an array.
#[derive(Clone, Debug)]
pub struct ArrayPage {
    /// Where it is.
    pub place: Place,
    /// Its metadata.
    pub metadata: Arc<ArrayMetadata>,
    /// The array, or why its elements cannot be read.
    pub array: Result<Arc<Array>, String>,
    /// The coordinates along its dimensions.
    pub coordinates: Vec<Coordinate>,
    /// Whether its elements are categories.
    pub has_categories: bool,
    /// Whether each coordinate of its dimensions is as long as these, as a table with labels needs it.
    pub has_tables: bool,
    /// What makes it hard to read or view, and what helps.
    pub warnings: Vec<PageWarning>,
    /// What the server reads of it for one request.
    pub limits: PageLimits,
    /// What the storage did not answer, as a sentence.
    pub silence: Option<&'static str>,
    /// Why a range in the URL is none, as a sentence without its end.
    pub complaint: Option<String>,
    /// What the URL says.
    pub state: PageState,
}

/// The tabs of the page: the word of the URL, and the text.
const TABS: [(&str, &str); 7] = [
    ("image", "Image"),
    ("line", "Line"),
    ("table", "Table"),
    ("hist", "Histogram"),
    ("chunks", "Chunks"),
    ("meta", "Metadata"),
    ("use", "Use it"),
];

impl ArrayPage {
    /// The page as HTML. For long attributes this takes time: call it on the compute pool.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let bound = self.array.as_deref();
        let facts = ShownArray::of(&self.metadata, bound.map_err(String::as_str), self.limits);
        let fields = field_names(&self.metadata.data_type);
        let facts = facts.at_field(&self.metadata.data_type, self.state.get("fields"));
        let array = bound.ok();
        let view = ArrayView::of(&self.state, &facts, array);
        let tab = self.tab(&view, &facts);
        let view = if tab == "line" { view.lined(&self.state, &facts, array) } else { view };
        let attributes = self.metadata.attributes.object();
        let viewed = ViewedArray {
            facts: &facts,
            array,
            view: &view,
            state: &self.state,
            links: &self.place.links,
            attributes: &attributes,
            coordinates: &self.coordinates,
            has_categories: self.has_categories,
            has_tables: self.has_tables,
            image: None,
        };
        let title = self.place.name();
        let body = html! {
            div.columns {
                (tree(&self.place))
                main #content {
                    (heading(&title, &facts, &viewed))
                    (version(&self.place))
                    @if let Some(image) = &self.place.image_above {
                        p.muted {
                            "A level of the image " a href=(image.view) { bdi { (self.place.name_of(&image.view)) } }
                        }
                    }
                    (silence(self.silence))
                    @if let Some(complaint) = &self.complaint {
                        p.warn role="alert" { bdi { (cut(complaint, 1000)) } ". The picture is shown without that." }
                    }
                    (warnings(&self.state, &view, &facts))
                    (layout_warnings(&self.warnings))
                    (field_links(&fields, &self.state, &self.place.links.view))
                    (tabs(&self.state, &self.place.links.view, tab, &facts))
                    @match tab {
                        "chunks" => { (array_tabs::chunks(&viewed, &self.metadata)) }
                        "meta" => { (array_tabs::metadata(&viewed, &self.metadata)) }
                        "use" => { (array_tabs::snippets(&viewed, site, &self.place)) }
                        tab => {
                            @if facts.unreadable.is_none() { (viewer(&viewed, tab, &title)) }
                            section.about aria-label="About this array" {
                                (array_tabs::facts(&viewed))
                                div {
                                    h2 { "Attributes" }
                                    (attributes::tree(&attributes))
                                }
                            }
                        }
                    }
                }
            }
        };
        let head = Head {
            title: &format!("{title} – {}", name(&self.place.mount)),
            description: Some(described(&facts, &attributes)),
            picture: viewed.is_cheap_plane().then(|| viewed.picture(SHARED_PICTURE)),
            crumbs: &self.place.crumbs,
        };
        page(site, &head, &body)
    }

    fn tab(&self, view: &ArrayView, facts: &ShownArray) -> &'static str {
        let asked = tabs_of(facts).find(|(word, _)| Some(*word) == self.state.get("tab"));
        asked.map_or_else(|| default_tab(view, facts), |(word, _)| word)
    }
}

/// One sentence about an array.
fn described(facts: &ShownArray, attributes: &Map<String, Value>) -> String {
    let text = |name: &str| attributes.get(name).and_then(Value::as_str);
    let long = text("long_name").or_else(|| text("standard_name")).or_else(|| text("description"));
    let shape = format!("{} array of {}", facts.type_name, shape_text(&facts.shape));
    long.map_or_else(|| shape.clone(), |long| format!("{}: {shape}", cut(long, 200)))
}

/// The tabs of an array. What has no numbers has no picture, line or histogram, and what has no real numbers no histogram.
fn tabs_of(facts: &ShownArray) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (has_numbers, has_statistics) = (facts.drawn != Drawn::Text, facts.values.are_real());
    TABS.into_iter().filter(move |(word, _)| match *word {
        "image" | "line" => has_numbers,
        "hist" => has_numbers && has_statistics,
        _ => true,
    })
}

fn default_tab(view: &ArrayView, facts: &ShownArray) -> &'static str {
    match view.shown {
        _ if facts.drawn == Drawn::Text => "table",
        Shown::Plane { .. } => "image",
        Shown::Line(_) => "line",
        Shown::Value | Shown::Table => "table",
    }
}

/// The name, type and dimensions of an array.
pub(super) fn heading(title: &str, facts: &ShownArray, viewed: &ViewedArray<'_>) -> Markup {
    let attribute = |name: &str| viewed.attributes.get(name).and_then(serde_json::Value::as_str);
    let long =
        attribute("long_name").or_else(|| attribute("standard_name")).or_else(|| attribute("description"));
    html! {
        div.heading {
            h1 { bdi { (title) } }
            p.summary {
                code { (facts.type_name) } " "
                span.dimensions {
                    "("
                    @for (at, (name, &length)) in facts.names.iter().zip(&facts.shape).enumerate() {
                        (if at == 0 { "" } else { ", " })
                        bdi { (name) } " " (count_text(length.into()))
                    }
                    ")"
                }
                // The bytes of text are not known without reading it.
                @if !facts.data_type.is_variable() { " · " (bytes_text(facts.bytes())) }
                " · Zarr v" (facts.zarr_format)
                @if facts.is_sharded { " · sharded" }
                @if let Some(units) = attribute("units") { " · " bdi { (cut(units, 60)) } }
            }
            @if let Some(long) = long { p.muted { bdi { (cut(long, 300)) } } }
        }
    }
}

fn warnings(state: &PageState, view: &ArrayView, facts: &ShownArray) -> Markup {
    let unknown = state.unknown();
    html! {
        @if let Some(complaint) = &view.complaint {
            p.warn role="alert" { bdi { (cut(complaint, 400)) } ". The default slice is shown." }
        }
        @if let Some(reason) = &facts.unreadable {
            p.warn { "The elements cannot be read: " bdi { (reason) } }
        }
        @if !unknown.is_empty() {
            p.warn { "Unknown in this URL: " bdi { (cut(&unknown.join(", "), 200)) } }
        }
    }
}

/// Most fields that a page links to.
const MOST_FIELDS: usize = 100;

/// The names of the fields of a struct.
fn field_names(data_type: &DataType) -> Vec<&str> {
    match data_type {
        DataType::Struct(structure) => structure.fields().iter().map(|field| &*field.name).collect(),
        _ => Vec::new(),
    }
}

/// Links to the single fields of a struct, and to all.
fn field_links(fields: &[&str], state: &PageState, view: &str) -> Markup {
    let current = state.get("fields");
    html! {
        @if !fields.is_empty() {
            p.struct-fields {
                "Fields: "
                a href=(state.with(&[("fields", ""), ("tab", "")]).link(view)) aria-current=[current.is_none().then_some("true")] { "all" }
                @for field in fields.iter().take(MOST_FIELDS) {
                    " · "
                    a href=(state.with(&[("fields", field), ("tab", "")]).link(view)) aria-current=[(current == Some(field)).then_some("true")] { bdi { (name(field)) } }
                }
            }
        }
    }
}

/// The list of tabs, as links.
fn tabs(state: &PageState, view: &str, current: &str, facts: &ShownArray) -> Markup {
    html! {
        nav.tabs aria-label="Tabs" {
            @for (word, text) in tabs_of(facts) {
                a href=(state.with(&[("tab", word)]).link(view)) data-tab=(word)
                    aria-current=[(word == current).then_some("page")] { (text) }
            }
        }
    }
}
