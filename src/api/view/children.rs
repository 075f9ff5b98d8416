//! The nodes below a group, opened for its page.

use futures::stream::{self, StreamExt};

use super::links::PageLinks;
use crate::array::OpenNode;
use crate::hierarchy::Node;
use crate::key::NodePath;
use crate::metadata::NodeKind;
use crate::page::{ChildRow, TreeItem};
use crate::services::extract::NodeTarget;

/// Nodes that are opened concurrently.
const CONCURRENCY: usize = 16;

/// A node in a list.
pub(super) fn item(links: PageLinks<'_>, path: &NodePath, kind: Option<NodeKind>) -> TreeItem {
    TreeItem { name: path.name().to_owned(), href: links.view(path), node: links.node(path), kind }
}

/// Opens nodes, in their order. A node that cannot be opened is only listed.
pub(super) async fn open(
    target: &NodeTarget,
    links: PageLinks<'_>,
    paths: Vec<(NodePath, Option<NodeKind>)>,
) -> Vec<ChildRow> {
    let rows = stream::iter(paths).map(|(path, kind)| async move {
        let node = target.opener.find(&path).await.ok().flatten();
        row(links, &path, kind, node.as_deref())
    });
    rows.buffered(CONCURRENCY).collect().await
}

/// Whether there are nodes at these paths. One that cannot be opened is there.
pub(super) async fn are_there(target: &NodeTarget, paths: Vec<NodePath>) -> Vec<bool> {
    let nodes =
        stream::iter(paths).map(|path| async move { !matches!(target.opener.find(&path).await, Ok(None)) });
    nodes.buffered(CONCURRENCY).collect().await
}

fn row(links: PageLinks<'_>, path: &NodePath, kind: Option<NodeKind>, node: Option<&OpenNode>) -> ChildRow {
    let kind = node.map_or(kind, |node| match &node.node {
        Node::Array(_) => Some(NodeKind::Array),
        Node::Group(_) => Some(NodeKind::Group),
    });
    let (array, attributes) = match node.map(|node| (&node.node, node)) {
        Some((Node::Array(metadata), node)) => {
            let array = node.array().cloned().map_err(|error| error.to_string());
            (Some((metadata.clone(), array)), None)
        }
        Some((Node::Group(group), _)) => (None, Some(group.attributes.clone())),
        None => (None, None),
    };
    ChildRow { item: item(links, path, kind), links: links.of(path), array, attributes }
}
