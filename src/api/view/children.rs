//! The nodes below a group, opened for its page.

use futures::stream::{self, StreamExt};
use tokio::time::{Instant, timeout_at};

use super::links::PageLinks;
use crate::array::OpenNode;
use crate::hierarchy::Node;
use crate::key::NodePath;
use crate::metadata::NodeKind;
use crate::page::{ChildRow, PageLimits, TreeItem};
use crate::services::extract::NodeTarget;

/// Nodes that are opened concurrently.
const CONCURRENCY: usize = 16;

/// A node in a list.
pub(super) fn item(links: PageLinks<'_>, path: &NodePath, kind: Option<NodeKind>) -> TreeItem {
    TreeItem { name: path.name().to_owned(), href: links.view(path), node: links.node(path), kind }
}

/// Opens nodes for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowOpener<'a> {
    pub(super) target: &'a NodeTarget,
    pub(super) links: PageLinks<'a>,
    /// What the server reads of them for one request.
    pub(super) limits: PageLimits,
    /// When what is not open yet is only listed: where the storage does not answer.
    pub(super) deadline: Option<Instant>,
}

impl RowOpener<'_> {
    /// Opens nodes, in their order. A node that cannot be opened is only listed.
    pub(super) async fn open(self, paths: Vec<(NodePath, Option<NodeKind>)>) -> Vec<ChildRow> {
        let rows = stream::iter(paths).map(|(path, kind)| async move {
            let finding = self.target.opener.find(&path);
            let node = match self.deadline {
                Some(deadline) => timeout_at(deadline, finding).await.ok(),
                None => Some(finding.await),
            };
            let node = node.and_then(Result::ok).flatten();
            self.row(&path, kind, node.as_deref())
        });
        rows.buffered(CONCURRENCY).collect().await
    }

    /// A node that is only listed.
    pub(super) fn listed(self, (path, kind): &(NodePath, Option<NodeKind>)) -> ChildRow {
        self.row(path, *kind, None)
    }

    fn row(self, path: &NodePath, kind: Option<NodeKind>, node: Option<&OpenNode>) -> ChildRow {
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
        let Self { links, limits, .. } = self;
        ChildRow {
            item: item(links, path, kind),
            links: links.of(path),
            array,
            attributes,
            limits,
            extent: None,
            pictured: None,
        }
    }
}

/// Whether there are nodes at these paths. One that cannot be opened is there.
pub(super) async fn are_there(target: &NodeTarget, paths: Vec<NodePath>) -> Vec<bool> {
    let nodes =
        stream::iter(paths).map(|path| async move { !matches!(target.opener.find(&path).await, Ok(None)) });
    nodes.buffered(CONCURRENCY).collect().await
}
