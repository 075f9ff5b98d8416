//! Links that open a node in viewers of others.
//!
//! Only where such a link can work: the server has a public URL, every caller may read the node, and the viewer's page may
//! read across origins.

use serde_json::json;

use super::summary_document::OpenInDocument;
use crate::conventions::{NodeSummary, NodeSummaryKind};
use crate::http::options::HttpOptions;
use crate::http::path::encode;
use crate::http::viewers::{Opens, Start, Viewer};
use crate::metadata::NodeKind;

/// The viewers that open a node. `below` is the path of its stored documents below the public URL, without a slash before.
pub(crate) fn viewers(
    options: &HttpOptions,
    below: &str,
    node: NodeKind,
    summary: &NodeSummary,
) -> Vec<OpenInDocument> {
    if options.public_url.is_empty() {
        return Vec::new();
    }
    let url = format!("{}/{below}", options.public_url);
    let viewers = options.open_in.iter().filter_map(|viewer| Viewer::parse(viewer));
    let can_read = |viewer: &Viewer<'_>| viewer.origin().is_none_or(|origin| options.cors.allows(origin));
    let viewers = viewers.filter(|viewer| opens(viewer.opens, node, summary)).filter(can_read);
    viewers.map(|viewer| opened(&viewer, &url, summary)).collect()
}

fn opens(opens: Opens, node: NodeKind, summary: &NodeSummary) -> bool {
    let is_image = matches!(summary.kind, NodeSummaryKind::OmeImage | NodeSummaryKind::OmeLabels)
        && !summary.levels.is_empty();
    match opens {
        Opens::Images => is_image,
        Opens::AllOfOme => {
            is_image
                || matches!(
                    summary.kind,
                    NodeSummaryKind::OmePlate | NodeSummaryKind::OmeWell | NodeSummaryKind::OmeCollection
                )
        }
        Opens::ImagesAndArrays => is_image || (node == NodeKind::Array && summary.has_picture),
        Opens::Pictures => summary.has_picture,
    }
}

fn opened(viewer: &Viewer<'_>, url: &str, summary: &NodeSummary) -> OpenInDocument {
    let name = viewer.name.to_owned();
    match viewer.start {
        Start::Page(page) => {
            OpenInDocument { name, url: Some(page.replace("{url}", &encode(url))), command: None }
        }
        Start::Neuroglancer(page) => OpenInDocument {
            name,
            url: Some(format!("{page}{}", encode(&state(url, summary)))),
            command: None,
        },
        // A URL of the server has no characters that a shell would interpret.
        Start::Command(command) => {
            OpenInDocument { name, url: None, command: Some(format!("{command} '{url}'")) }
        }
    }
}

/// The state of Neuroglancer: one layer, with the range of the colours if there is one for all elements.
fn state(url: &str, summary: &NodeSummary) -> String {
    let is_labels = summary.kind == NodeSummaryKind::OmeLabels;
    let kind = if is_labels { "segmentation" } else { "image" };
    let name = url.rsplit('/').next().unwrap_or_default();
    let mut layer = json!({ "type": kind, "source": format!("zarr://{url}"), "name": name });
    if let Some((low, high)) = summary.range.filter(|_| !is_labels && summary.channels.len() <= 1) {
        layer["shaderControls"] = json!({ "normalized": { "range": [low, high] } });
    }
    json!({ "layers": [layer] }).to_string()
}
