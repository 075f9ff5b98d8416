//! The label images of an image, drawn over its picture: what is labelled, and how opaque the labels are.
//!
//! Without scripts the labels are a second picture over the first; a form chooses them.

use maud::{Markup, html};

use super::child_row::row;
use super::facts::name;
use super::label_layer::LabelLayer;
use super::state::{PageState, join};
use super::viewed_array::{PAGE_PICTURE, ViewedArray};

/// Opacities that a page offers, in tenths.
const OPACITIES: [u8; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/// The opacity of labels in tenths, if the URL has none.
const DEFAULT_OPACITY: u8 = 5;

/// The labels that a URL shows.
fn shown<'a>(viewed: &ViewedArray<'a>) -> Option<&'a LabelLayer> {
    let asked = viewed.state.get("labels")?;
    viewed.image?.labels.iter().find(|layer| layer.name == asked)
}

/// The opacity that a URL has, in tenths.
fn opacity(state: &PageState) -> u8 {
    let asked = state.get("opacity").and_then(|text| text.parse::<f64>().ok());
    let near = |tenths: &&u8| asked.is_some_and(|asked| (asked * 10.0 - f64::from(**tenths)).abs() <= 0.5);
    OPACITIES.iter().find(near).copied().unwrap_or(DEFAULT_OPACITY)
}

/// The picture of the labels that the URL shows, which lies over the picture of the image.
pub(super) fn overlay(viewed: &ViewedArray<'_>) -> Option<Markup> {
    let layer = shown(viewed)?;
    let (facts, view) = (viewed.facts, viewed.view);
    // The same place along the axes that both have.
    let lengths = layer.levels.first().and_then(row).map(|finest| finest.facts.shape).unwrap_or_default();
    let selected =
        facts.names.iter().zip(&view.subset).zip(&facts.shape).filter_map(|((name, range), &length)| {
            let dim =
                layer.axes.iter().position(|axis| axis.as_ref() == Some(name)).filter(|_| !range.keep)?;
            let own = lengths.get(dim).copied().unwrap_or(length);
            // Labels may have fewer elements than the image.
            let scaled = u128::from(range.start) * u128::from(own) / u128::from(length.max(1));
            Some((format!("isel.{name}"), scaled.to_string()))
        });
    let selected: Vec<(String, String)> = selected.collect();
    let pairs = selected.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let source = join(&layer.links.image, pairs.chain([("size", PAGE_PICTURE)]));
    Some(html! {
        img.overlay.(format!("opacity-{}", opacity(viewed.state))) src=(source) alt=(format!("labels: {}", layer.name));
    })
}

/// The fields that choose labels and their opacity.
pub(super) fn fields(viewed: &ViewedArray<'_>) -> Markup {
    let layers = viewed.image.map(|image| image.labels).unwrap_or_default();
    let current = shown(viewed).map(|layer| layer.name.as_str());
    let opacity = opacity(viewed.state);
    html! {
        @if !layers.is_empty() {
            div.field {
                label for="labels" { "Labels" }
                select #labels name="labels" {
                    option value="" { "none" }
                    @for layer in layers {
                        option value=(layer.name) selected[current == Some(layer.name.as_str())] { (name(&layer.name)) }
                    }
                }
            }
            div.field {
                label for="opacity" { "Opacity of labels" }
                select #opacity name="opacity" {
                    @for tenths in OPACITIES {
                        option value=(if tenths == DEFAULT_OPACITY { String::new() } else { format!("0.{tenths}") })
                            selected[tenths == opacity] { (tenths) "0 %" }
                    }
                }
            }
        }
    }
}
