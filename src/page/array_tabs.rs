//! The tabs of an array's page that need no elements: chunks, metadata, and how to use it.

use maud::{Markup, html};

use super::attributes;
use super::cost::Cost;
use super::facts::{bytes_text, count_text, cut, product, shape_text};
use super::layout::Site;
use super::node_page::Place;
use super::snippets;
use super::state::below;
use super::view::Shown;
use super::viewed_array::ViewedArray;
use crate::metadata::ArrayMetadata;

/// Most stored codecs that are listed.
const MOST_CODECS: usize = 32;

/// The facts about an array, as a table.
pub(super) fn facts(viewed: &ViewedArray<'_>) -> Markup {
    let facts = viewed.facts;
    let shape = |shape: &Option<Vec<u64>>| shape.as_deref().map_or_else(|| "varied".to_owned(), shape_text);
    html! {
        table.facts {
            caption { "Array" }
            tbody {
                tr { th scope="row" { "Shape" } td { (shape_text(&facts.shape)) } }
                tr { th scope="row" { "Data type" } td { code { (facts.type_name) } } }
                tr { th scope="row" { "Size" } td { @if !facts.data_type.is_variable() { (bytes_text(facts.bytes())) " decoded, " } (count_text(facts.elements())) (if facts.elements() == 1 { " element" } else { " elements" }) } }
                @if facts.unreadable.is_none() {
                    @if facts.is_sharded {
                        tr { th scope="row" { "Shards" } td { (shape(&facts.chunk_shape)) ", " (count_text(facts.chunks())) " in all" } }
                        tr { th scope="row" { "Inner chunks" } td { (shape(&facts.decoded_shape)) } }
                    } @else {
                        tr { th scope="row" { "Chunks" } td { (shape(&facts.chunk_shape)) ", " (count_text(facts.chunks())) " in all" } }
                    }
                    @if let Some(bytes) = facts.chunk_bytes() {
                        tr { th scope="row" { "Chunk size" } td { (bytes_text(bytes)) " decoded" } }
                    }
                }
                tr { th scope="row" { "Fill value" } td { code { bdi { (facts.fill) } } } }
                tr { th scope="row" { "Format" } td { "Zarr v" (facts.zarr_format) } }
            }
        }
    }
}

/// The grid of chunks, what reading costs, and the codecs.
pub(super) fn chunks(viewed: &ViewedArray<'_>, metadata: &ArrayMetadata) -> Markup {
    let facts = viewed.facts;
    let lengths = |lengths: Option<&Vec<u64>>, dim: usize| {
        lengths
            .and_then(|lengths| lengths.get(dim))
            .map_or_else(|| "varied".to_owned(), |&one| count_text(one.into()))
    };
    html! {
        section.about {
            (self::facts(viewed))
            table {
                caption { "Grid" }
                thead { tr {
                    th scope="col" { "Dimension" } th.number scope="col" { "Length" }
                    th.number scope="col" { (if facts.is_sharded { "Shard" } else { "Chunk" }) }
                    @if facts.is_sharded { th.number scope="col" { "Inner chunk" } }
                    th.number scope="col" { (if facts.is_sharded { "Shards" } else { "Chunks" }) }
                } }
                tbody {
                    @for (dim, name) in facts.names.iter().enumerate() {
                        tr {
                            th scope="row" { bdi { (name) } }
                            td.number { (count_text(facts.shape[dim].into())) }
                            td.number { (lengths(facts.chunk_shape.as_ref(), dim)) }
                            @if facts.is_sharded { td.number { (lengths(facts.decoded_shape.as_ref(), dim)) } }
                            td.number { (lengths(Some(&facts.grid_shape), dim)) }
                        }
                    }
                }
            }
            (costs(viewed))
            (codecs(metadata))
        }
    }
}

/// What typical reads cost.
fn costs(viewed: &ViewedArray<'_>) -> Markup {
    let (facts, view) = (viewed.facts, viewed.view);
    let Some(array) = viewed.array else { return html! {} };
    let one = |keep: &dyn Fn(usize) -> bool| {
        let range = |(dim, &length): (usize, &u64)| {
            let full = crate::chunk::AxisRange::full(length);
            let at = view.subset.get(dim).map_or(0, |range| range.start);
            if keep(dim) {
                full
            } else {
                crate::chunk::AxisRange { start: at, count: 1, step: 1, keep: false }
            }
        };
        let subset: Vec<_> = facts.shape.iter().enumerate().map(range).collect();
        let asked = product(&subset.iter().map(|range| range.count).collect::<Vec<_>>());
        (Cost::of(&subset, facts.item_bytes, array), asked.saturating_mul(facts.item_bytes.into()))
    };
    let mut rows = vec![("one element".to_owned(), one(&|_| false))];
    if let Shown::Plane { rows: r, columns: c, .. } = view.shown {
        rows.push((
            format!("a plane of {} and {}", facts.names[r], facts.names[c]),
            one(&|dim| dim == r || dim == c),
        ));
    }
    for (dim, name) in facts.names.iter().enumerate().take(8) {
        rows.push((format!("a line along {name}"), one(&|own| own == dim)));
    }
    html! {
        // Narrow screens show a part of it.
        div.scroll tabindex="0" role="region" aria-label="What reading costs" {
            table.costs {
                caption { "What reading costs" }
                thead { tr {
                    th scope="col" { "Read" } th.number scope="col" { "Chunks" } th.number scope="col" { "Decoded" }
                    th.number scope="col" { "Wanted" } th.number scope="col" { "Amplification" }
                } }
                tbody {
                    @for (text, (cost, wanted)) in rows {
                        tr {
                            th scope="row" { bdi { (text) } }
                            td.number { (count_text(cost.chunks)) }
                            td.number { (bytes_text(cost.bytes)) }
                            td.number { (bytes_text(wanted)) }
                            td.number { (count_text(cost.bytes / wanted.max(1))) " ×" }
                        }
                    }
                }
            }
        }
    }
}

/// The chain of codecs, with their parameters.
fn codecs(metadata: &ArrayMetadata) -> Markup {
    html! {
        div {
            h2 { "Codecs" }
            ol.codecs {
                @for codec in metadata.codecs.iter().take(MOST_CODECS) {
                    li {
                        code { (cut(&codec.name, 100)) }
                        @if !codec.configuration.is_empty() { (attributes::tree(&codec.configuration)) }
                    }
                }
            }
        }
    }
}

/// The attributes and the documents.
pub(super) fn metadata(viewed: &ViewedArray<'_>, metadata: &ArrayMetadata) -> Markup {
    html! {
        section.about {
            div {
                h2 { "Attributes" }
                (attributes::tree(viewed.attributes))
            }
            (facts(viewed))
            (codecs(metadata))
            (documents(viewed.links, metadata.zarr_format.number()))
        }
    }
}

/// Links to the documents of a node.
pub(super) fn documents(links: &super::node_page::NodeLinks, zarr_format: u8) -> Markup {
    let stored: &[&str] = match zarr_format {
        3 => &["zarr.json"],
        2 => &[".zarray", ".zattrs"],
        _ => &[],
    };
    html! {
        div {
            h2 { "Documents" }
            ul {
                li { a href=(links.nodes) { "normalised metadata (JSON)" } }
                @for name in stored { li { a href=(below(&links.store, name)) { code { (name) } } } }
                li { a href=(links.store) { "stored keys" } }
            }
        }
    }
}

/// What the stored numbers stand for, and which lines return them as they are.
fn encoding(viewed: &ViewedArray<'_>) -> Markup {
    let values = &viewed.facts.values;
    let missing: Vec<String> = values
        .missing_numbers()
        .iter()
        .take(4)
        .filter(|number| !number.is_nan())
        .map(ToString::to_string)
        .collect();
    html! {
        " Its stored numbers stand for others: "
        @if let Some((scale, offset)) = values.packing() { "value = " (scale) " × stored + " (offset) "; " }
        @if !missing.is_empty() { (missing.join(", ")) (if missing.len() == 1 { " is missing" } else { " are missing" }) "; " }
        "lines for Python, JavaScript (fetch), curl and R return values, the others what is stored."
    }
}

/// How to read this slice with common programs.
pub(super) fn snippets(viewed: &ViewedArray<'_>, site: &Site, place: &Place) -> Markup {
    html! {
        section.use-it {
            p.muted {
                "These read the slice " code { (viewed.view.slice(&viewed.facts.shape)) } " of this array, or what is said above them."
                @if viewed.is_decoded() { (encoding(viewed)) }
            }
            (snippets::signature_note(&viewed.links.store))
            @for snippet in snippets::all(viewed, &site.origin, place) { (snippet.article()) }
        }
    }
}
