//! The summary of a group.

use super::axis::SummaryAxis;
use super::facts::{ArrayFacts, Neighbours};
use super::kind::NodeSummaryKind;
use super::layout::layout;
use super::level::levels;
use super::of_array::{names, of_image, put_view};
use super::of_dataset::Dataset;
use super::ome::{OmeImage, OmeNode, PlateSummary, series};
use super::rules;
use super::summary::NodeSummary;
use super::warning::LayoutWarning;
use super::zvf::VectorSummary;
use crate::key::NodePath;
use crate::metadata::GroupMetadata;

/// Summarizes a group, given the nodes of [`Needed::of_group`](super::Needed::of_group). `is_stale` says that the stored
/// consolidated metadata of the group names other children than there are.
#[must_use]
pub fn summarize_group(
    path: &NodePath,
    group: &GroupMetadata,
    neighbours: &Neighbours,
    is_stale: bool,
) -> NodeSummary {
    let mut summary = if let Some(store) = VectorSummary::parse(&group.attributes) {
        of_vectors(path, store, neighbours)
    } else if let Some((node, version)) = OmeNode::parse(&group.attributes) {
        NodeSummary { version, ..of_ome(path, with_list(path, node, neighbours), neighbours) }
    } else {
        let mut summary = Dataset::new(path, &group.attributes, neighbours).summary();
        let declared = layout(&group.attributes).unwrap_or_default();
        let declared: Vec<_> = declared.into_iter().map(|level| (level.asset, None)).collect();
        summary.levels = levels(path, &declared, neighbours);
        summary.warnings.extend(rules::of_missing_levels(&summary.levels));
        summary
    };
    if is_stale {
        let detail = "the consolidated metadata names other children than there are; consolidate it again";
        summary.warnings.push(LayoutWarning::new("consolidated-stale", detail));
    }
    summary
}

/// What a group is, as one of labels if the group above lists it.
fn with_list(path: &NodePath, node: OmeNode, neighbours: &Neighbours) -> OmeNode {
    let OmeNode::Image(image) = node else { return node };
    let list = image.needed_list(path).and_then(|list| neighbours.group(&list));
    OmeNode::Image(match list {
        Some(list) => image.listed_in(&list.attributes, path),
        None => image,
    })
}

fn of_ome(path: &NodePath, node: OmeNode, neighbours: &Neighbours) -> NodeSummary {
    let kind = match &node {
        OmeNode::Image(image) if image.is_labels => NodeSummaryKind::OmeLabels,
        OmeNode::Image(_) => NodeSummaryKind::OmeImage,
        OmeNode::LabelList(_) => NodeSummaryKind::OmeLabels,
        OmeNode::Plate(_) => NodeSummaryKind::OmePlate,
        OmeNode::Well(_) => NodeSummaryKind::OmeWell,
        OmeNode::Collection(_) => NodeSummaryKind::OmeCollection,
        OmeNode::Scene => NodeSummaryKind::OmeScene,
    };
    let mut summary = NodeSummary::of(kind);
    match node {
        OmeNode::Image(image) => put_image(&mut summary, path, image, neighbours),
        OmeNode::LabelList(labels) => summary.labels = labels,
        OmeNode::Plate(plate) => put_plate(&mut summary, path, plate, neighbours),
        OmeNode::Well(images) => {
            summary.has_picture = !images.is_empty();
            summary.images = images;
        }
        OmeNode::Collection(images) => {
            let listed = || path.child("OME").ok().and_then(|child| neighbours.group(&child));
            let of_child = || listed().map(|group| series(&group.attributes)).unwrap_or_default();
            summary.images = if images.is_empty() { of_child() } else { images };
            // The first image is called so, whether it is listed or not.
            summary.has_picture = true;
        }
        OmeNode::Scene => {}
    }
    summary
}

fn put_image(summary: &mut NodeSummary, path: &NodePath, image: OmeImage, neighbours: &Neighbours) {
    summary.levels = levels(path, &image.levels, neighbours);
    let arrays: Vec<(&str, &ArrayFacts)> = image
        .levels
        .iter()
        .filter_map(|(level, _)| {
            let node = NodePath::parse(&format!("{}{level}", path.prefix())).ok()?;
            Some((level.as_str(), neighbours.array(&node)?))
        })
        .collect();
    summary.warnings.extend(rules::of_missing_levels(&summary.levels));
    summary.warnings.extend(rules::of_image(&image, &arrays));
    summary.axes.clone_from(&image.axes);
    // The view is that of the first level, so that level must be there.
    let first =
        arrays.first().filter(|(level, _)| image.levels.first().is_some_and(|(path, _)| path == level));
    if let Some((_, array)) = first {
        let names = names(array, Some(&image));
        summary.axes = names
            .iter()
            .zip(&array.metadata.shape)
            .map(|(name, &size)| SummaryAxis {
                name: name.clone(),
                size: Some(size),
                ..SummaryAxis::default()
            })
            .collect();
        of_image(&mut summary.axes, &image, 0);
        put_view(summary, array, &names, Some(&image));
        summary.has_picture = array.has_picture();
        let single = if image.levels.len() == 1 { rules::of_single_level(array, &names) } else { None };
        summary.warnings.extend(single.into_iter().chain(rules::of_chunks(array)));
    }
    summary.channels = image.channels;
    let labels = path.child("labels").ok().and_then(|child| neighbours.group(&child));
    if let Some((OmeNode::LabelList(labels), _)) = labels.and_then(|group| OmeNode::parse(&group.attributes))
    {
        summary.labels = labels;
    }
}

fn put_plate(summary: &mut NodeSummary, path: &NodePath, mut plate: PlateSummary, neighbours: &Neighbours) {
    let images = |(well, ..): &(String, u64, u64)| {
        let node = NodePath::parse(&format!("{}{well}", path.prefix())).ok()?;
        match OmeNode::parse(&neighbours.group(&node)?.attributes)? {
            (OmeNode::Well(images), _) => Some(images.len() as u64),
            _ => None,
        }
    };
    plate.fields = plate.fields.or_else(|| plate.wells.iter().filter_map(images).max());
    summary.has_picture = !plate.wells.is_empty();
    summary.plate = Some(plate);
}

fn of_vectors(path: &NodePath, store: VectorSummary, neighbours: &Neighbours) -> NodeSummary {
    let declared: Vec<_> = store.levels.into_iter().map(|level| (level, None)).collect();
    let levels = levels(path, &declared, neighbours);
    let warnings = rules::of_missing_levels(&levels).into_iter().collect();
    NodeSummary {
        version: store.version,
        axes: store.axes,
        bbox: store.bounds,
        levels,
        warnings,
        ..NodeSummary::of(NodeSummaryKind::Zvf)
    }
}
