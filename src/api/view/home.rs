//! The page of all mounts.

use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures::stream::{self, StreamExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::children::RowOpener;
use super::links::PageLinks;
use super::{headers, site};
use crate::api::nodes::missing::folders;
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Rights, Scope};
use crate::cpu::ComputePool;
use crate::hierarchy::{Child, Node};
use crate::http::base_path::BasePath;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::{GroupMetadata, NodeKind};
use crate::page::{ChildRow, HomePage, MountCard, PageLimits, pictured};
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::readiness::MountState;
use crate::services::state::AppState;

/// First nodes of a mount that its card shows pictures of.
const MOST_NODES: usize = 8;
/// Most nodes of a mount that its card has links to.
const MOST_LISTED: usize = 200;
/// Longest wait for the first nodes of a mount. The card of a slow one has none.
const MAX_WAIT: Duration = Duration::from_millis(700);
/// After this time the nodes beyond the first are not listed, where the storage is slow.
const LISTING_WAIT: Duration = Duration::from_millis(400);
/// After this time no more is read to find what the pictures of datasets are of. A card has those that were found until then.
const PICTURES_WAIT: Duration = Duration::from_millis(500);
/// Most nodes of a dataset among which its picture is searched.
const MOST_VARIABLES: usize = 32;
/// Mounts whose first nodes are read concurrently.
const CONCURRENCY: usize = 8;
/// Longest list of attributes of a root that is read for its title, in bytes.
const MOST_ATTRIBUTES: usize = 16 << 10;

/// Responds with the page of all mounts.
///
/// # Errors
/// Only a bug.
pub(crate) async fn home(
    state: &AppState,
    uri: &Uri,
    request: &HeaderMap,
    base: &BasePath,
    caller: &Caller,
) -> Result<Response, Problem> {
    let readiness = state.readiness.check().await;
    let mut cards = Vec::new();
    for mount in state.mounts.iter().filter(|mount| caller.rights().can_see(&mount.name)) {
        let mount_state = readiness.get(&mount.name).copied().unwrap_or(MountState::Ready);
        cards.push(card(state, base, caller, mount, mount_state));
    }
    let mounts: Vec<MountCard> = stream::iter(cards).buffered(CONCURRENCY).collect().await;
    // What a group is follows from its attributes.
    let nodes = mounts.iter().flat_map(|mount| mount.nodes.iter().flatten());
    let bytes = nodes.map(attribute_bytes).fold(0, u64::saturating_add);
    let page = HomePage { mounts, version: env!("CARGO_PKG_VERSION") };
    let (site, request) = (site::site(state, base, caller, uri, request), request.clone());
    let answer = move || headers::answer(&request, page.render(&site), site.session.is_some());
    Ok(state.engine.cpu.run_document(bytes, answer).await?)
}

/// Bytes of the attributes of a group in a list.
fn attribute_bytes(node: &ChildRow) -> u64 {
    node.attributes.as_ref().map_or(0, |attributes| attributes.text().len() as u64)
}

async fn card(
    state: &AppState,
    base: &BasePath,
    caller: &Caller,
    mount: &Mount,
    mount_state: MountState,
) -> MountCard {
    let links = PageLinks { base: base.as_str(), mount: &mount.name, signed: None };
    let root = NodePath::root();
    let contents = if mount_state.is_ready() {
        timeout(MAX_WAIT, contents(state, caller, mount, links)).await.ok()
    } else {
        None
    };
    let Contents { title, nodes, has_more } = contents.unwrap_or_default();
    MountCard {
        name: mount.name.clone(),
        href: links.view(&root),
        kind: mount.store.kind().as_str(),
        writable: mount.writable,
        trouble: mount_state.why().map(|why| (mount_state.as_str(), why)),
        title,
        nodes,
        has_more,
        store: links.of(&root).store,
    }
}

/// What a card shows of a mount.
#[derive(Debug, Default)]
struct Contents {
    /// The title of its root.
    title: Option<String>,
    /// Its nodes, the first ones opened; `None` if they are not known.
    nodes: Option<Vec<ChildRow>>,
    /// Whether there are more.
    has_more: bool,
}

/// The title of a mount's root and the nodes in it, as far as the caller may read and list them.
async fn contents(state: &AppState, caller: &Caller, mount: &Mount, links: PageLinks<'_>) -> Contents {
    let began = Instant::now();
    let root = NodePath::root();
    let may = |scope| {
        let need = Permission::derived(scope, KeyScope::Prefix(root.prefix().clone()));
        caller.rights().allows(&mount.name, &need)
    };
    if !may(Scope::Read) || !may(Scope::List) {
        return Contents::default();
    }
    let Some((mount, opener)) = state.mounts.with_opener(&mount.name).cloned() else {
        return Contents::default();
    };
    let target = NodeTarget { mount, opener, path: root.clone() };
    let rows =
        RowOpener { target: &target, links, limits: PageLimits::of(&state.engine.read), deadline: None };
    let cpu = &state.engine.cpu;
    match target.opener.find(&root).await {
        Ok(Some(opened)) => match &opened.node {
            Node::Group(group) => {
                let is_short = group.attributes.text().len() <= MOST_ATTRIBUTES;
                let title = if is_short { group.attributes.get("title") } else { None };
                let title = title.and_then(|title| title.as_str().map(str::to_owned));
                let (nodes, has_more) = nodes(cpu, rows, Top::Group(group), began).await;
                Contents { title, nodes, has_more }
            }
            // A mount that is one array shows this.
            Node::Array(_) => {
                let mut rows = rows.open(vec![(root, Some(NodeKind::Array))]).await;
                for row in &mut rows {
                    row.item.name.clone_from(&target.mount.name);
                }
                Contents { nodes: Some(rows), ..Contents::default() }
            }
        },
        Ok(None) => {
            let (nodes, has_more) = nodes(cpu, rows, Top::Folder(caller.rights()), began).await;
            Contents { title: None, nodes, has_more }
        }
        Err(_) => Contents::default(),
    }
}

/// What the root of a mount is.
#[derive(Clone, Copy, Debug)]
enum Top<'a> {
    Group(&'a GroupMetadata),
    /// No node, as the caller sees it.
    Folder(&'a Rights),
}

impl Top<'_> {
    /// The first nodes below it; `None` if they cannot be listed.
    async fn paths(self, target: &NodeTarget, most: usize) -> Option<Vec<(NodePath, Option<NodeKind>)>> {
        let root = NodePath::root();
        match self {
            Self::Group(group) => {
                let children = target.opener.hierarchy().children(&root, group, most).await.ok()?.children?;
                let path = |child: Child| Some((root.child(&child.name).ok()?, child.kind));
                Some(children.into_iter().filter_map(path).collect())
            }
            Self::Folder(rights) => folders(rights, target, &root, most).await.ok(),
        }
    }
}

/// The nodes of a mount, of which the first are opened, and whether there are more.
async fn nodes(
    cpu: &ComputePool,
    rows: RowOpener<'_>,
    top: Top<'_>,
    began: Instant,
) -> (Option<Vec<ChildRow>>, bool) {
    let Some(mut first) = top.paths(rows.target, MOST_NODES + 1).await else { return (None, false) };
    let has_more = first.len() > MOST_NODES;
    first.truncate(MOST_NODES);
    let mut opened = rows.open(first).await;
    let mut is_cut = false;
    if has_more {
        // Every node has a link, if the storage lists them in time.
        let listing = top.paths(rows.target, MOST_LISTED + 1);
        let listed = timeout_at(began + LISTING_WAIT, listing).await.ok().flatten();
        is_cut = listed.as_ref().is_none_or(|listed| listed.len() > MOST_LISTED);
        let listed = listed.unwrap_or_default();
        opened.extend(listed.iter().take(MOST_LISTED).skip(MOST_NODES).map(|node| rows.listed(node)));
    }
    // The card is complete without them.
    let _ = timeout_at(began + PICTURES_WAIT, add_pictures(cpu, rows, &mut opened)).await;
    (Some(opened), is_cut)
}

/// Adds to groups that are datasets the arrays that their pictures are of.
async fn add_pictures(cpu: &ComputePool, rows: RowOpener<'_>, nodes: &mut [ChildRow]) {
    let root = NodePath::root();
    for node in nodes.iter_mut().take(MOST_NODES).filter(|node| node.attributes.is_some()) {
        let group = node.clone();
        let is_plain = cpu.run_document(attribute_bytes(node), move || group.is_plain_group()).await;
        if !is_plain.unwrap_or_default() {
            continue;
        }
        let Ok(path) = root.child(&node.item.name) else { continue };
        let Ok(Some(opened)) = rows.target.opener.find(&path).await else { continue };
        let Node::Group(group) = &opened.node else { continue };
        let children = rows.target.opener.hierarchy().children(&path, group, MOST_VARIABLES).await;
        let children = children.ok().and_then(|children| children.children).unwrap_or_default();
        let arrays = children.iter().filter(|child| child.kind == Some(NodeKind::Array));
        let paths = arrays.filter_map(|child| Some((path.child(&child.name).ok()?, child.kind)));
        node.pictured = pictured(rows.open(paths.collect()).await).map(Box::new);
    }
}
