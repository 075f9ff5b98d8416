//! The label images that belong to an image, opened for its page (OME-Zarr 0.5, section "labels").

use super::children::RowOpener;
use crate::conventions::{OmeImage, OmeNode};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::{Attributes, NodeKind};
use crate::page::LabelLayer;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// Most label images of an image that its page offers.
const MOST_LABELS: usize = 8;
/// Most levels of a label image.
const MOST_LEVELS: usize = 64;
/// The group that names the label images.
const LABELS: &str = "labels";

/// The label images of an image that `may_read` allows. One that cannot be opened is left out.
pub(super) async fn labels(
    state: &AppState,
    rows: RowOpener<'_>,
    may_read: impl Fn(&NodePath) -> bool,
) -> Result<Vec<LabelLayer>, Problem> {
    let RowOpener { target, links, .. } = rows;
    let mut layers = Vec::new();
    let Some(list) = target.path.child(LABELS).ok().filter(|path| may_read(path)) else { return Ok(layers) };
    let Some(attributes) = attributes(target, &list).await else { return Ok(layers) };
    let bytes = attributes.text().len() as u64;
    let named = state.engine.cpu.run_document(bytes, move || OmeNode::parse(&attributes)).await?;
    let Some((OmeNode::LabelList(names), _)) = named else { return Ok(layers) };
    for name in names.into_iter().take(MOST_LABELS) {
        let path = NodePath::parse(&format!("{}{name}", list.prefix().as_str()));
        let Some(path) = path.ok().filter(|path| may_read(path)) else { continue };
        let Some(attributes) = self::attributes(target, &path).await else { continue };
        let bytes = attributes.text().len() as u64;
        let image = state.engine.cpu.run_document(bytes, move || OmeImage::parse(&attributes)).await?;
        let Some(image) = image else { continue };
        let prefix = path.prefix().as_str();
        let levels = image.levels.iter().take(MOST_LEVELS).filter_map(|(level, _)| {
            let path = NodePath::parse(&format!("{prefix}{level}")).ok()?;
            may_read(&path).then_some((path, Some(NodeKind::Array)))
        });
        let levels = rows.open(levels.collect()).await;
        let axes = image.names();
        layers.push(LabelLayer { name, links: links.of(&path), axes, colors: image.label_colors, levels });
    }
    Ok(layers)
}

/// The attributes of a group, if there is one.
async fn attributes(target: &NodeTarget, path: &NodePath) -> Option<Attributes> {
    match &target.opener.find(path).await.ok()??.node {
        Node::Group(group) => Some(group.attributes.clone()),
        Node::Array(_) => None,
    }
}
