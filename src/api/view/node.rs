//! The handlers of pages of nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use tokio::time::timeout;

use super::children::{RowOpener, are_there, item};
use super::coordinates::CoordinateReader;
use super::links::PageLinks;
use super::listing::{ListedChildren, listed};
use super::{headers, labelled, labels, listing, site, warnings};
use crate::api::image;
use crate::api::nodes::missing;
use crate::array::{ArrayError, OpenNode};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope, SignedUrl};
use crate::conventions::{OmeNode, has_categories, is_northing, is_vector_store};
use crate::error::ErrorClass;
use crate::hierarchy::{Child, Children, HierarchyError, Node};
use crate::http::base_path::BasePath;
use crate::http::problem::Problem;
use crate::http::route::{Resource, RouteSpec};
use crate::key::NodePath;
use crate::metadata::{ArrayMetadata, GroupMetadata, NodeKind};
use crate::page::{ArrayPage, Coordinate, GroupPage, PageLimits, PageState, Place, ShownVersion};
use crate::reduce::CfValues;
use crate::services::coordinates::coordinate_of;
use crate::services::extract::NodeTarget;
use crate::services::pinned::PinnedMounts;
use crate::services::state::AppState;
use crate::store::{ObjectId, PinnedVersion};
use crate::views::{Above, ImageAbove, ImageFinder};

/// The page of a node.
pub(crate) const VIEW: RouteSpec = RouteSpec::new("/view/{mount}/{*path}", Resource::Page).for_people();

/// The page of the node at the root of a mount.
pub(crate) const ROOT_VIEW: RouteSpec =
    RouteSpec::new("/view/{mount}", Resource::Page).with_slash("/view/{mount}/").for_people();

/// Most nodes that a page lists.
const MOST_CHILDREN: usize = 200;
/// Most wells of a plate that are checked.
const MOST_WELLS: usize = 400;
/// Longest search for the wells of a plate: after it, all count as there.
const WELLS_WAIT: Duration = Duration::from_secs(1);
/// Longest wait for the nodes at the side of a page.
const SIDE_WAIT: Duration = Duration::from_secs(2);
/// Longest wait for what a page is complete without, where the storage did not answer before.
const SILENT_WAIT: Duration = Duration::from_millis(200);
/// Most dimensions whose coordinates are found.
const MOST_COORDINATES: usize = 8;
/// Bytes of a page besides the documents that it shows, about: longer ones are made on the compute pool.
const PAGE_BYTES: u64 = 16 << 10;

/// Show a node in a browser
///
/// A page for people: the array as a picture with its other dimensions to step through, a table, a histogram, its chunks
/// and attributes, and lines for programs that read the same slice; a group as a list of its nodes. The words of the query
/// are those of `/v1/data` and of pictures. A page shows nothing that the caller could not read by other routes.
#[utoipa::path(
    method(get, head),
    path = VIEW.template,
    tag = "pages",
    params(
        ("mount" = String, Path, description = "Name of a mount"),
        ("path" = String, Path, description = "Path of the node; empty for the root"),
    ),
    responses(
        (status = 200, description = "The page", content_type = "text/html"),
        (status = 307, description = "The page of the positions that labels select (`sel.NAME`)"),
        (status = 304, description = "The page still has an entity tag of `If-None-Match`"),
        (status = 404, description = "The mount or the node does not exist, or `server.ui` is false"),
    )
)]
pub(super) async fn get_view(
    State(state): State<AppState>,
    target: NodeTarget,
    caller: Caller,
    base: BasePath,
    head: Parts,
) -> Result<Response, Problem> {
    let (uri, request) = (head.uri.clone(), head.headers.clone());
    if !state.options.ui {
        return Err(
            Problem::from_class(ErrorClass::NotFound).detail("this server serves no pages (`server.ui`)")
        );
    }
    let view = View {
        state: &state,
        target: &target,
        caller: &caller,
        links: PageLinks {
            base: base.as_str(),
            mount: &target.mount.name,
            signed: head.extensions.get::<SignedUrl>(),
        },
        query: query(&uri),
        snapshot: head.extensions.get::<PinnedMounts>().map(PinnedMounts::snapshot),
        labels: CoordinateReader::new(&state, &head),
    };
    let mut site = site::site(&state, &base, &caller, &uri, &request);
    // The holder of a signed URL has no session that could end.
    site.is_signed_in &= view.links.signed.is_none();
    let is_missing =
        |error: &ArrayError| matches!(error, ArrayError::Hierarchy(HierarchyError::NoSuchNode { .. }));
    let node = match target.opener.open(&target.path).await {
        Ok(node) => node,
        Err(error) if is_missing(&error) => {
            let folders = missing::folders(caller.rights(), &target, &target.path, MOST_CHILDREN + 1).await?;
            if folders.is_empty() {
                let problem =
                    Box::pin(missing::problem_of(error, caller.rights(), &target, &target.path)).await;
                let listing = missing::listing_of(caller.rights(), &target, &target.path).await;
                return Err(match listing {
                    Some(path) => problem.extension("listing", path),
                    None => problem,
                });
            }
            let page = view.folder(folders).await;
            return render(&state, request, PAGE_BYTES, move || page.render(&site)).await;
        }
        Err(error) => {
            return Err(Box::pin(missing::problem_of(error, caller.rights(), &target, &target.path)).await);
        }
    };
    let bytes = PAGE_BYTES.saturating_add(node.located.document_bytes());
    match &node.node {
        Node::Array(metadata) => {
            if let Ok(array) = node.array()
                && let Some(redirect) = labelled::redirect(&state, &head, &target, array).await?
            {
                return Ok(redirect);
            }
            let page = view.array(&node, metadata).await?;
            render(&state, request, bytes, move || page.render(&site)).await
        }
        Node::Group(group) => {
            let page = view.group(group).await?;
            render(&state, request, bytes, move || page.render(&site)).await
        }
    }
}

/// Show the node at the root of a mount in a browser
#[utoipa::path(
    method(get, head),
    path = ROOT_VIEW.template,
    tag = "pages",
    params(("mount" = String, Path, description = "Name of a mount")),
    responses(
        (status = 200, description = "The page", content_type = "text/html"),
        (status = 404, description = "The mount does not exist, or is empty"),
    )
)]
pub(super) async fn get_root_view(
    state: State<AppState>,
    target: NodeTarget,
    caller: Caller,
    base: BasePath,
    head: Parts,
) -> Result<Response, Problem> {
    get_view(state, target, caller, base, head).await
}

/// Renders a page where it delays no other request.
async fn render(
    state: &AppState,
    request: HeaderMap,
    bytes: u64,
    page: impl FnOnce() -> String + Send + 'static,
) -> Result<Response, Problem> {
    let has_session = !state.access.rules().is_open();
    Ok(state.engine.cpu.run_document(bytes, move || headers::answer(&request, page(), has_session)).await?)
}

fn query(uri: &Uri) -> PageState {
    let query = uri.query().unwrap_or_default();
    PageState::new(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

/// A request for a page.
struct View<'a> {
    state: &'a AppState,
    target: &'a NodeTarget,
    caller: &'a Caller,
    links: PageLinks<'a>,
    query: PageState,
    /// The snapshot that the request sees, if it is one of a branch.
    snapshot: Option<ObjectId>,
    labels: CoordinateReader<'a>,
}

impl View<'_> {
    /// Whether the caller may list what is below a path.
    fn may_list(&self, path: &NodePath) -> bool {
        let need = Permission::derived(Scope::List, KeyScope::Prefix(path.prefix().clone()));
        self.caller.rights().allows(&self.target.mount.name, &need)
    }

    /// Whether the caller may read a node.
    fn may_read(&self, path: &NodePath) -> bool {
        let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
        self.caller.rights().allows(&self.target.mount.name, &need)
    }

    fn place(&self) -> Place {
        let path = &self.target.path;
        Place {
            mount: self.target.mount.name.clone(),
            path: path.as_str().to_owned(),
            links: self.links.of(path),
            version: self.version(),
            image_above: None,
            crumbs: self.links.crumbs(path),
            tree: None,
            has_more: false,
        }
    }

    /// The version of the mount that the request sees.
    fn version(&self) -> Option<ShownVersion> {
        let served = self.target.mount.store.served_version()?;
        let path = self.target.path.as_str();
        let named = PinnedVersion::of_text(path);
        let below = if named.is_some() { path.split_once('/').map_or("", |(_, below)| below) } else { path };
        let permanent = |snapshot: ObjectId| {
            let path = NodePath::parse(&format!("@{snapshot}/{below}")).ok()?;
            self.links.reach(&path).then_some(())?;
            Some((snapshot.to_string(), self.links.view(&path)))
        };
        Some(ShownVersion {
            name: named.unwrap_or(served).to_string(),
            snapshot: self.snapshot.and_then(permanent),
            all: self.links.reach(&NodePath::root()).then(|| self.links.versions()),
        })
    }

    /// The nodes below a group, as far as they can be listed.
    async fn children(
        &self,
        path: &NodePath,
        group: &GroupMetadata,
    ) -> Result<ListedChildren, HierarchyError> {
        if !self.may_list(path) {
            return Ok(ListedChildren::default());
        }
        listed(self.target, path, group, MOST_CHILDREN).await
    }

    /// The nodes of the group or folder above an array; `None` if the caller may not read or list it.
    async fn siblings(&self, parent: &NodePath) -> Option<ListedChildren> {
        if !self.may_read(parent) || !self.may_list(parent) {
            return None;
        }
        match self.target.opener.find(parent).await.ok()?.as_deref().map(|above| &above.node) {
            Some(Node::Group(group)) => self.children(parent, group).await.ok(),
            Some(Node::Array(_)) => None,
            None => {
                let most = MOST_CHILDREN + 1;
                let folders = missing::folders(self.caller.rights(), self.target, parent, most).await.ok()?;
                let truncated = folders.len() > MOST_CHILDREN;
                let child = |(path, kind): (NodePath, _)| Child { name: path.name().to_owned(), kind };
                let children = Some(folders.into_iter().take(MOST_CHILDREN).map(child).collect());
                let children = Children { children, truncated, ..Children::default() };
                Some(ListedChildren { children, silence: None })
            }
        }
    }

    fn limits(&self) -> PageLimits {
        PageLimits::of(&self.state.engine.read)
    }

    /// Opens nodes in lists: quickly, if the storage does not answer.
    fn rows(&self, is_silent: bool) -> RowOpener<'_> {
        let deadline = is_silent.then(|| tokio::time::Instant::now() + SILENT_WAIT);
        RowOpener { target: self.target, links: self.links, limits: self.limits(), deadline }
    }

    async fn array(&self, node: &OpenNode, metadata: &Arc<ArrayMetadata>) -> Result<ArrayPage, Problem> {
        let mut place = self.place();
        let path = &self.target.path;
        let mut silence = None;
        // The list at the side is an extra: without it the page is complete, so a backend that does not answer does not keep it.
        match path.parent() {
            // Nothing is beside the array that is a mount.
            None => place.tree = Some(Vec::new()),
            Some(parent) => match timeout(SIDE_WAIT, self.siblings(&parent)).await {
                Ok(Some(siblings)) => {
                    place.has_more = siblings.children.truncated;
                    place.tree = self.tree(&parent, &siblings.children);
                    silence = siblings.silence;
                }
                Ok(None) => {}
                Err(_) => silence = Some(listing::SLOW),
            },
        }
        let extras = async { (self.image_above().await, self.coordinates(metadata).await) };
        let (image, coordinates) = match silence {
            Some(_) => timeout(SILENT_WAIT, extras).await.unwrap_or_default(),
            None => extras.await,
        };
        let tables_wait = if silence.is_some() { SILENT_WAIT } else { SIDE_WAIT };
        let has_tables = timeout(tables_wait, self.has_tables(metadata)).await.unwrap_or_default();
        let (state, complaint) = self.state();
        place.image_above = image.as_ref().map(|image| Box::new(self.links.of(&image.path)));
        let warnings = warnings::of_array(self.state, self.links, path, node, image.is_some()).await?;
        Ok(ArrayPage {
            place,
            has_categories: has_categories(&metadata.attributes, image.as_ref().map(|image| &image.ome)),
            metadata: Arc::clone(metadata),
            array: node.array().cloned().map_err(|error| error.to_string()),
            coordinates,
            has_tables,
            warnings,
            limits: self.limits(),
            silence,
            complaint,
            state,
        })
    }

    /// Whether each coordinate of an array is as long as its dimension. One that cannot be read has no tables either.
    async fn has_tables(&self, metadata: &ArrayMetadata) -> bool {
        let (rights, path) = (self.caller.rights(), &self.target.path);
        let names = metadata.dimension_names.iter().flatten().zip(&metadata.shape);
        for (name, &length) in names.take(MOST_COORDINATES) {
            let Some(name) = name.as_deref().filter(|name| !name.is_empty()) else { continue };
            let found = coordinate_of(self.target, rights, path, (name, length), "", Instant::now());
            if Box::pin(found).await.is_err() {
                return false;
            }
        }
        true
    }

    /// What the query says, without words that no picture has; and why it has none.
    fn state(&self) -> (PageState, Option<String>) {
        let (mut state, mut complaints) = (self.query.clone(), Vec::new());
        for name in image::CHECKED_WORDS {
            if let Some(complaint) = self.query.get(name).and_then(|text| image::word_complaint(name, text)) {
                state = state.with(&[(name, "")]);
                complaints.push(complaint);
            }
        }
        let complaint = (!complaints.is_empty()).then(|| complaints.join("; "));
        (state, complaint)
    }

    /// The image that the array is a level of. A page is complete without it.
    async fn image_above(&self) -> Option<ImageAbove> {
        let may_read = |path: &NodePath| self.may_read(path);
        let above = self.finder(&may_read).above(&self.target.path).await;
        above.ok().and_then(Above::into_image)
    }

    fn finder<'f>(&'f self, may_read: &'f (dyn Fn(&NodePath) -> bool + Sync)) -> ImageFinder<'f> {
        ImageFinder::new(&self.target.opener, &self.state.engine.cpu, may_read, Instant::now())
    }

    fn tree(&self, parent: &NodePath, children: &Children) -> Option<Vec<crate::page::TreeItem>> {
        let children = children.children.as_ref()?;
        let item = |child: &Child| Some(item(self.links, &parent.child(&child.name).ok()?, child.kind));
        Some(children.iter().filter_map(item).collect())
    }

    /// The arrays beside an array that are named as its dimensions.
    async fn coordinates(&self, metadata: &ArrayMetadata) -> Vec<Coordinate> {
        let mut found = Vec::new();
        let (Some(parent), Some(names)) = (self.target.path.parent(), &metadata.dimension_names) else {
            return found;
        };
        // Only maps are asked where they are.
        let is_plane = metadata.shape.len() > 1;
        for (dim, name) in names.iter().enumerate().take(MOST_COORDINATES) {
            let Some(path) = name.as_deref().and_then(|name| parent.child(name).ok()) else { continue };
            if !self.may_read(&path) || path == self.target.path {
                continue;
            }
            let Ok(Some(node)) = self.target.opener.find(&path).await else { continue };
            let Node::Array(coordinate) = &node.node else { continue };
            let Some(&length) = metadata.shape.get(dim) else { continue };
            if *coordinate.shape != [length] {
                continue;
            }
            let text = |name: &str| {
                let text = coordinate.attributes.member_text(name).filter(|text| text.len() < 500)?;
                serde_json::from_str::<String>(text).ok()
            };
            let map_axis = match node.array() {
                Ok(array) if is_plane => self.labels.map_axis(&node, array).await,
                _ => None,
            };
            found.push(Coordinate {
                dim,
                data: self.links.data(&path),
                units: text("units"),
                calendar: text("calendar"),
                length,
                is_northing: is_northing(path.name(), &coordinate.attributes),
                data_type: coordinate.data_type.clone(),
                values: CfValues::unmasked(&coordinate.data_type, &coordinate.attributes),
                map_axis,
            });
        }
        found
    }

    async fn group(&self, group: &GroupMetadata) -> Result<GroupPage, Problem> {
        let path = &self.target.path;
        let ListedChildren { children, silence } = self.children(path, group).await?;
        let rows = self.rows(silence.is_some());
        let mut place = self.place();
        place.has_more = children.truncated;
        place.tree = self.tree(path, &children);
        let paths = children.children.as_ref().map(|children| {
            let path = |child: &Child| Some((path.child(&child.name).ok()?, child.kind));
            children.iter().filter_map(path).collect::<Vec<_>>()
        });
        let children_rows = match paths {
            Some(paths) => {
                let mut opened = rows.open(paths).await;
                if silence.is_none() {
                    self.labels.add_extents(self.target, &mut opened).await;
                }
                Some(opened)
            }
            None => None,
        };
        let (is_vectors, mut ome) = self.conventions(group).await?;
        if let Some((OmeNode::Image(image), _)) = &mut ome {
            let may_read = |path: &NodePath| self.may_read(path);
            // A page is complete without the list above.
            if let Ok((listed, _)) = self.finder(&may_read).with_list(path, image.clone()).await {
                *image = listed;
            }
        }
        let levels = self.levels(rows, ome.as_ref()).await;
        let may_read = |path: &NodePath| self.may_read(path);
        let labels =
            if levels.is_empty() { Vec::new() } else { labels::labels(self.state, rows, may_read).await? };
        let missing_wells = self.missing_wells(ome.as_ref()).await;
        let warnings =
            warnings::of_group(self.state, self.links, path, group, children.is_stale, &levels).await?;
        Ok(GroupPage {
            place,
            missing_wells,
            zarr_format: group.zarr_format.number(),
            is_consolidated: children.is_consolidated,
            children: children_rows,
            ome,
            levels,
            labels,
            vectors: (is_vectors && cfg!(feature = "vectors")).then(|| self.links.vectors(path)),
            attributes: Some(group.attributes.clone()),
            warnings,
            silence,
            state: self.query.clone(),
        })
    }

    /// Whether a group is a store of vectors, and what else it is in OME-Zarr.
    async fn conventions(
        &self,
        group: &GroupMetadata,
    ) -> Result<(bool, Option<(OmeNode, Option<String>)>), Problem> {
        let attributes = group.attributes.clone();
        let bytes = attributes.text().len() as u64;
        let parse = move || {
            // Stores of vectors have `multiscales` too.
            let is_vectors = is_vector_store(&attributes);
            (is_vectors, if is_vectors { None } else { OmeNode::parse(&attributes) })
        };
        Ok(self.state.engine.cpu.run_document(bytes, parse).await?)
    }

    /// The levels of an image, opened.
    async fn levels(
        &self,
        rows: RowOpener<'_>,
        ome: Option<&(OmeNode, Option<String>)>,
    ) -> Vec<crate::page::ChildRow> {
        let Some((OmeNode::Image(image), _)) = ome else { return Vec::new() };
        let prefix = self.target.path.prefix().as_str();
        let paths = image.levels.iter().filter_map(|(level, _)| {
            let path = NodePath::parse(&format!("{prefix}{level}")).ok()?;
            self.may_read(&path).then_some((path, Some(NodeKind::Array)))
        });
        let rows = rows.open(paths.collect()).await;
        rows.into_iter().filter(|row| row.array.is_some()).collect()
    }

    /// The paths of wells that a plate lists and that are not there.
    async fn missing_wells(&self, ome: Option<&(OmeNode, Option<String>)>) -> BTreeSet<String> {
        let Some((OmeNode::Plate(plate), _)) = ome else { return BTreeSet::new() };
        let prefix = self.target.path.prefix().as_str();
        let wells = plate.wells.iter().take(MOST_WELLS).filter_map(|(well, ..)| {
            let path = NodePath::parse(&format!("{prefix}{well}")).ok()?;
            self.may_read(&path).then_some((well, path))
        });
        let (wells, paths): (Vec<&String>, Vec<NodePath>) = wells.unzip();
        let found = timeout(WELLS_WAIT, are_there(self.target, paths)).await.unwrap_or_default();
        wells.into_iter().zip(found).filter(|(_, is_there)| !is_there).map(|(well, _)| well.clone()).collect()
    }

    async fn folder(&self, folders: Vec<(NodePath, Option<NodeKind>)>) -> GroupPage {
        let mut place = self.place();
        place.has_more = folders.len() > MOST_CHILDREN;
        let shown = || folders.iter().take(MOST_CHILDREN);
        place.tree = Some(shown().map(|(path, kind)| item(self.links, path, *kind)).collect());
        let children = self.rows(false).open(shown().cloned().collect()).await;
        GroupPage {
            place,
            missing_wells: BTreeSet::new(),
            attributes: None,
            zarr_format: 0,
            is_consolidated: false,
            children: Some(children),
            ome: None,
            levels: Vec::new(),
            labels: Vec::new(),
            vectors: None,
            warnings: Vec::new(),
            silence: None,
            state: self.query.clone(),
        }
    }
}
