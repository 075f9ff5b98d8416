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
use crate::auth::{KeyScope, Permission, Scope};
use crate::hierarchy::Node;
use crate::http::base_path::BasePath;
use crate::key::NodePath;
use crate::metadata::NodeKind;
use crate::page::{ChildRow, HomePage, MountCard, PageLimits, pictured};
use crate::services::extract::NodeTarget;
use crate::services::mount::Mount;
use crate::services::readiness::MountState;
use crate::services::state::AppState;

/// First nodes of a mount that its card shows.
const MOST_NODES: usize = 8;
/// Longest wait for the first nodes of a mount. The card of a slow one has none.
const MAX_WAIT: Duration = Duration::from_millis(700);
/// After this time no more is read to find what the pictures of datasets are of. A card has those that were found until then.
const PICTURES_WAIT: Duration = Duration::from_millis(500);
/// Most nodes of a dataset among which its picture is searched.
const MOST_VARIABLES: usize = 32;
/// Mounts whose first nodes are read concurrently.
const CONCURRENCY: usize = 8;
/// Longest list of attributes of a root that is read for its title, in bytes.
const MOST_ATTRIBUTES: usize = 16 << 10;

/// Responds with the page of all mounts.
pub(crate) async fn home(
    state: &AppState,
    uri: &Uri,
    request: &HeaderMap,
    base: &BasePath,
    caller: &Caller,
) -> Response {
    let readiness = state.readiness.check().await;
    let mut cards = Vec::new();
    for mount in state.mounts.iter().filter(|mount| caller.rights().can_see(&mount.name)) {
        let trouble = readiness.get(&mount.name).copied().and_then(MountState::why);
        cards.push(card(state, base, caller, mount, trouble));
    }
    let mounts = stream::iter(cards).buffered(CONCURRENCY).collect().await;
    let page = HomePage { mounts, version: env!("CARGO_PKG_VERSION") };
    let site = site::site(state, base, caller, uri, request);
    headers::answer(request, page.render(&site), site.session.is_some())
}

async fn card(
    state: &AppState,
    base: &BasePath,
    caller: &Caller,
    mount: &Mount,
    trouble: Option<&'static str>,
) -> MountCard {
    let links = PageLinks { base: base.as_str(), mount: &mount.name };
    let root = NodePath::root();
    let contents = match trouble {
        None => timeout(MAX_WAIT, contents(state, caller, mount, links)).await.ok(),
        Some(_) => None,
    };
    let (title, mut nodes) = contents.unwrap_or_default();
    let has_more = nodes.as_ref().is_some_and(|nodes| nodes.len() > MOST_NODES);
    if let Some(nodes) = &mut nodes {
        nodes.truncate(MOST_NODES);
    }
    MountCard {
        name: mount.name.clone(),
        href: links.view(&root),
        kind: mount.store.kind().as_str(),
        writable: mount.writable,
        trouble,
        title,
        nodes,
        has_more,
        store: links.of(&root).store,
    }
}

/// The title of a mount's root and its first nodes, as far as the caller may read and list them.
async fn contents(
    state: &AppState,
    caller: &Caller,
    mount: &Mount,
    links: PageLinks<'_>,
) -> (Option<String>, Option<Vec<ChildRow>>) {
    let pictures_until = Instant::now() + PICTURES_WAIT;
    let root = NodePath::root();
    let may = |scope| {
        let need = Permission::derived(scope, KeyScope::Prefix(root.prefix().clone()));
        caller.rights().allows(&mount.name, &need)
    };
    if !may(Scope::Read) || !may(Scope::List) {
        return (None, None);
    }
    let Some((mount, opener)) = state.mounts.with_opener(&mount.name).cloned() else { return (None, None) };
    let target = NodeTarget { mount, opener, path: root.clone() };
    let rows =
        RowOpener { target: &target, links, limits: PageLimits::of(&state.engine.read), deadline: None };
    match target.opener.find(&root).await {
        Ok(Some(opened)) => match &opened.node {
            Node::Group(group) => {
                let is_short = group.attributes.text().len() <= MOST_ATTRIBUTES;
                let title = if is_short { group.attributes.get("title") } else { None };
                let title = title.and_then(|title| title.as_str().map(str::to_owned));
                let children = target.opener.hierarchy().children(&root, group, MOST_NODES + 1).await;
                let children = children.ok().and_then(|children| children.children);
                let path =
                    |child: &crate::hierarchy::Child| Some((root.child(&child.name).ok()?, child.kind));
                match children.map(|children| children.iter().filter_map(path).collect()) {
                    Some(paths) => {
                        let mut opened = rows.open(paths).await;
                        // The card is complete without them.
                        let _ = timeout_at(pictures_until, add_pictures(rows, &mut opened)).await;
                        (title, Some(opened))
                    }
                    None => (title, None),
                }
            }
            // A mount that is one array shows this.
            Node::Array(_) => {
                let mut rows = rows.open(vec![(root, Some(NodeKind::Array))]).await;
                for row in &mut rows {
                    row.item.name.clone_from(&target.mount.name);
                }
                (None, Some(rows))
            }
        },
        Ok(None) => {
            let folders = folders(caller.rights(), &target, &root, MOST_NODES + 1).await;
            (None, Some(rows.open(folders).await))
        }
        Err(_) => (None, None),
    }
}

/// Adds to groups that are datasets the arrays that their pictures are of.
async fn add_pictures(rows: RowOpener<'_>, nodes: &mut [ChildRow]) {
    let root = NodePath::root();
    for node in nodes.iter_mut().take(MOST_NODES).filter(|node| node.is_plain_group()) {
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
