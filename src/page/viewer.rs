//! The viewer of an array or image: what it is without scripts.

use maud::{Markup, html};

use super::controls::controls;
use super::downloads::downloads;
use super::facts::{Drawn, bytes_text, count_text, name, product};
use super::labels;
use super::view::Shown;
use super::viewed_array::{PAGE_PICTURE, ViewedArray};

/// Stripes along the longer side of a hatched plane.
const STRIPES: u64 = 100;

/// The viewer of a tab: image, line, table or histogram.
pub(super) fn viewer(viewed: &ViewedArray<'_>, tab: &'static str, title: &str) -> Markup {
    let ViewedArray { facts, view, state, .. } = viewed;
    let cost = viewed.cost();
    let is_possible = cost.is_some_and(|cost| facts.limits.allow(cost));
    let is_small = cost.is_some_and(|cost| facts.limits.allow_unasked(cost));
    let loads = is_small || (is_possible && state.get("load").is_some());
    if let Some(text) = emptiness(viewed) {
        return html! { p.empty { (text) } };
    }
    let plane = matches!(view.shown, Shown::Plane { .. });
    let tab = form(viewed, tab);
    html! {
        section.viewer data-viewer data-config=(viewed.config(tab)) aria-label=(title) {
            div.main {
                @match tab {
                    "image" => {
                        figure.stage #stage {
                            @if loads {
                                (hatch(viewed))
                                img #picture src=(viewed.picture(PAGE_PICTURE)) alt=(format!("{title}, slice {}", view.slice(&facts.shape)));
                                @if let Some(overlay) = labels::overlay(viewed) { (overlay) }
                            }
                        }
                    }
                    "line" => { figure.plot #plot {} noscript { p.muted { "Lines are drawn by a script." } } }
                    "table" => { div.table-window #table {} noscript { p.muted { "The table is filled by a script." } } }
                    _ => {
                        figure.plot #histogram {}
                        noscript { p.muted { "The histogram is drawn by a script. " a href=(viewed.links.stats) { "Statistics as JSON" } } }
                    }
                }
                @if tab == "line" { (along(viewed)) }
                (dimensions(viewed))
                p.cost #cost role="status" {
                    @if let Some(cost) = cost {
                        @if view.is_window {
                            "The centre of the " (if matches!(view.shown, Shown::Line(_)) { "line" } else { "plane" })
                            ", which is too large to load unasked. "
                        }
                        (count_text(cost.chunks)) (if cost.chunks == 1 { " chunk, " } else { " chunks, " })
                        (bytes_text(cost.bytes)) " decoded"
                        @if !loads && is_possible {
                            " – more than is loaded unasked. "
                            a.button href=(state.with(&[("load", "1")]).link(&viewed.links.view)) { "Load " (bytes_text(cost.bytes)) }
                        }
                        @if !is_possible { " – more than this server reads for one request. " }
                        @if !is_possible && state.get("slice").is_some() {
                            a.button href=(state.with_slice("").link(&viewed.links.view)) { "Show a part" }
                        }
                    }
                }
                // Beside a picture, they are among the controls.
                @if matches!(tab, "line" | "table") { p.muted { (downloads(viewed)) } }
                div #profiles {}
            }
            @if tab == "image" && plane { (controls(viewed)) }
        }
    }
}

/// Hatching behind the picture, which shows through where elements are missing. A script draws its own. Categories have none:
/// there, what has no colour is not missing.
fn hatch(viewed: &ViewedArray<'_>) -> Markup {
    let Some((width, height)) = viewed.picture_sides().filter(|_| !viewed.has_categories) else {
        return html! {};
    };
    // Lengths are in elements, whatever the size of the picture on the screen.
    let step = width.max(height).div_ceil(STRIPES).max(1);
    let sides = format!("0 0 {width} {height}");
    html! {
        svg.hatch.no-js viewBox=(sides) aria-hidden="true" {
            defs {
                pattern #missing patternUnits="userSpaceOnUse" patternTransform="rotate(45)" width=(step) height=(step) {
                    // A third, of one element too.
                    rect.stripe width=(format!("{}.{}", step / 3, step % 3 * 3)) height=(step) {}
                }
            }
            rect width=(width) height=(height) fill="url(#missing)" {}
        }
    }
}

/// The form in which a selection is shown: what is no picture, line or numbers is shown as a table.
fn form(viewed: &ViewedArray<'_>, tab: &'static str) -> &'static str {
    let is_text = viewed.facts.drawn == Drawn::Text;
    match (tab, viewed.view.shown) {
        (_, _) if is_text => "table",
        ("image", Shown::Line(_)) => "line",
        ("image", Shown::Value | Shown::Table) | ("line", Shown::Value) => "table",
        (tab, _) => tab,
    }
}

/// Why there is nothing to see, if so.
fn emptiness(viewed: &ViewedArray<'_>) -> Option<String> {
    let (facts, view) = (viewed.facts, viewed.view);
    if let Some(dim) = facts.shape.iter().position(|&length| length == 0) {
        let shape = facts.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
        return Some(format!(
            "This array has no elements: its shape is {shape}, and the length of {} is 0.",
            facts.names[dim]
        ));
    }
    let counts: Vec<u64> = view.subset.iter().map(|range| range.count).collect();
    (product(&counts) == 0).then(|| format!("The selection {} has no elements.", view.slice(&facts.shape)))
}

/// Links to the lines along the other dimensions through the same element.
fn along(viewed: &ViewedArray<'_>) -> Markup {
    let ViewedArray { facts, view, state, links, .. } = viewed;
    let is_long = |dim: &usize| facts.shape[*dim] > 1 || view.shown == Shown::Line(*dim);
    let dims: Vec<usize> = (0..facts.shape.len()).filter(is_long).collect();
    let word = |dim: usize| if facts.is_named[dim] { facts.names[dim].clone() } else { dim.to_string() };
    html! {
        @if dims.len() > 1 && matches!(view.shown, Shown::Line(_)) {
            p.struct-fields {
                "Along: "
                @for (at, &dim) in dims.iter().enumerate() {
                    (if at == 0 { "" } else { " · " })
                    a href=(state.with(&[("along", &word(dim)), ("tab", "line")]).link(&links.view)) data-along=(word(dim))
                        aria-current=[(view.shown == Shown::Line(dim)).then_some("true")] { bdi { (name(&facts.names[dim])) } }
                }
            }
        }
    }
}

/// The dimensions that are not shown whole: links to step through them, which a script makes sliders.
fn dimensions(viewed: &ViewedArray<'_>) -> Markup {
    let ViewedArray { facts, view, state, links, .. } = viewed;
    let fixed = || view.subset.iter().enumerate().filter(|(_, range)| !range.keep);
    let at =
        |dim: usize, place: u64| state.with_slice(&view.slice_at(&facts.shape, dim, place)).link(&links.view);
    html! {
        div.dims #dims {
            @for (dim, range) in fixed() {
                @let (place, last) = (range.start, facts.shape[dim].saturating_sub(1));
                div.dim data-dim=(dim) {
                    label for=(format!("dim-{dim}")) { bdi { (facts.names[dim]) } }
                    a.step href=(at(dim, place.saturating_sub(1))) rel="prev"
                        aria-label=(format!("previous {}", facts.names[dim])) { "‹" }
                    input.js-only type="range" min="0" max=(last) value=(place) id=(format!("dim-{dim}"));
                    a.step href=(at(dim, place.saturating_add(1).min(last))) rel="next"
                        aria-label=(format!("next {}", facts.names[dim])) { "›" }
                    input.index.js-only type="text" inputmode="numeric" value=(place) size="6"
                        aria-label=(format!("index along {}", facts.names[dim]));
                    span.place { span.no-js { (place) } " / " (last) }
                    output.label #(format!("label-{dim}")) {}
                    button.plain.play.js-only type="button" aria-label=(format!("play {}", facts.names[dim])) { "▶" }
                }
            }
        }
    }
}
