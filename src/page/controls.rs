//! The controls of a picture: a form that works without scripts.

use maud::{Markup, html};

use super::downloads::downloads;
use super::labels;
use super::state::{PageState, split, words_in};
use super::view::Shown;
use super::viewed_array::ViewedArray;

/// The names of the colour tables.
pub(super) const COLORMAPS: [&str; 10] =
    ["viridis", "magma", "inferno", "plasma", "cividis", "gray", "turbo", "RdBu", "Spectral", "coolwarm"];
/// The fields of the form, which other words of the URL do not repeat.
const FIELDS: [&str; 8] = ["slice", "colormap", "range", "scale", "axes", "tab", "labels", "opacity"];

/// The form.
pub(super) fn controls(viewed: &ViewedArray<'_>) -> Markup {
    let ViewedArray { facts, view, state, links, .. } = viewed;
    let chosen = |name: &str, value: &str| state.get(name) == Some(value);
    let Shown::Plane { rows, columns, colors } = view.shown else { return html! {} };
    // A name that the dimension does not have is none of the interface's.
    let word = |dim: usize| if facts.is_named[dim] { facts.names[dim].clone() } else { dim.to_string() };
    html! {
        form.controls #controls novalidate method="get" action=(split(&links.view).0) aria-label="Picture" {
            @for (name, value) in words_in(&links.view) {
                input type="hidden" name=(name) value=(value);
            }
            input type="hidden" name="slice" value=(view.slice(&facts.shape));
            @for (name, value) in state.besides(&FIELDS) {
                input type="hidden" name=(name) value=(value);
            }
            @if colors.is_none() {
                div.field.colors {
                    label for="colormap" { "Colours" }
                    select #colormap name="colormap" {
                        option value="" { "automatic" }
                        @for name in COLORMAPS {
                            option value=(name) selected[chosen("colormap", name)] { (name) }
                            option value=(format!("{name}_r")) selected[chosen("colormap", &format!("{name}_r"))] { (name) " reversed" }
                        }
                    }
                }
                div.field {
                    label for="range" { "Range" }
                    input #range name="range" type="text" value=[state.get("range")] placeholder="auto" size="14"
                        aria-describedby="range-help";
                    span.hint #range-help { "low,high or 2%,98%, slice, type" }
                }
                div.field {
                    label for="scale" { "Scale" }
                    select #scale name="scale" {
                        @for (value, text) in [("", "linear"), ("log", "log"), ("sqrt", "square root")] {
                            option value=(value) selected[chosen("scale", value)] { (text) }
                        }
                    }
                }
            }
            div.field {
                label for="axes" { "Axes" }
                select #axes name="axes" {
                    @for (row, column) in pairs(viewed, colors) {
                        @let is_shown = (row, column) == (rows, columns);
                        option value=(if is_shown && state.get("axes").is_none() { String::new() } else { format!("{},{}", word(row), word(column)) })
                            selected[is_shown] { (facts.names[row]) " ↓  " (facts.names[column]) " →" }
                    }
                }
            }
            (labels::fields(viewed))
            button.no-js type="submit" { "Show" }
            div #legend .legend.js-only {}
            div #channels .channels.js-only {}
            div.field.js-only {
                label.check { input #grid type="checkbox" checked[grid(state)]; " chunk grid" }
                label.check { input #lock type="checkbox" checked; " same range for all slices" }
            }
            div.buttons.js-only {
                button.plain #zoom-in type="button" title="Zoom in (+)" aria-label="Zoom in" { "+" }
                button.plain #zoom-out type="button" title="Zoom out (-)" aria-label="Zoom out" { "−" }
                button.plain #fit type="button" title="Fit (0)" { "fit" }
                button.plain #auto type="button" title="Automatic range (a)" { "auto range" }
                button.plain #copy type="button" title="Copy the link (y)" { "copy link" }
                button.plain #save type="button" title="Save as PNG (s)" { "save" }
            }
            p.readout.js-only #readout { "Point at the picture to read an element." }
            p.muted { (downloads(viewed)) }
        }
    }
}

/// Most dimensions whose pairs are offered.
const MOST_DIMENSIONS: usize = 6;

/// The rows and columns that a picture can have: those of now first.
fn pairs(viewed: &ViewedArray<'_>, colors: Option<usize>) -> Vec<(usize, usize)> {
    let Shown::Plane { rows, columns, .. } = viewed.view.shown else { return Vec::new() };
    let is_long = |dim: &usize| viewed.facts.shape[*dim] > 1 && Some(*dim) != colors;
    let dims: Vec<usize> = (0..viewed.facts.shape.len()).filter(is_long).take(MOST_DIMENSIONS).collect();
    let mut pairs = vec![(rows, columns), (columns, rows)];
    for &row in &dims {
        let others = dims.iter().map(|&column| (row, column)).filter(|(row, column)| row != column);
        pairs.extend(others);
    }
    let mut known = Vec::new();
    pairs.retain(|pair| {
        !known.contains(pair) && {
            known.push(*pair);
            true
        }
    });
    pairs
}

fn grid(state: &PageState) -> bool {
    state.get("grid") == Some("1")
}
