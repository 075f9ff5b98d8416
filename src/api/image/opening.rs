//! [`Opening`]: finds the array that a picture is of, and the image that it is a level of.

use std::sync::Arc;
use std::time::Instant;

use axum::http::request::Parts;

use super::layout::no_picture;
use super::subject::Subject;
use crate::api::dependents::{check_collision, reading};
use crate::api::nodes::missing;
use crate::array::{Array, OpenNode};
use crate::auth::caller::Caller;
use crate::auth::{KeyScope, Permission, Scope};
use crate::conventions::{OmeImage, OmeNode, is_vector_store};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::http::path::encode;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::metadata::Attributes;
use crate::render::raster::Decoding;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;
use crate::views::{ImageAbove, ImageFinder};

/// Most children of a group that are opened to find one with a picture.
const MOST_CHILDREN: usize = 100;

/// Opens what a request names; of a group, its first picture.
///
/// # Errors
/// 404; 422 for a group without a picture.
pub(super) async fn open(state: &AppState, head: &Parts, target: &NodeTarget) -> Result<Subject, Problem> {
    let opening = Opening { state, head, target };
    opening.one(opening.requested().await?).await
}

/// A request that is being opened.
pub(super) struct Opening<'a> {
    pub(super) state: &'a AppState,
    pub(super) head: &'a Parts,
    pub(super) target: &'a NodeTarget,
}

impl Opening<'_> {
    /// The node that the request names.
    pub(super) async fn requested(&self) -> Result<Arc<OpenNode>, Problem> {
        let target = self.target;
        let node = match target.opener.open_as(&target.path, reading(false)).await {
            Ok(node) => node,
            Err(error) => {
                let rights = Caller::of(&self.head.extensions).rights();
                return Err(Box::pin(missing::problem_of(error, rights, target, &target.path)).await);
            }
        };
        check_collision(&node, false)?;
        Ok(node)
    }

    /// The array of a node: of a group, of its first image or variable.
    pub(super) async fn one(&self, node: Arc<OpenNode>) -> Result<Subject, Problem> {
        match &node.node {
            Node::Array(_) => self.array(node).await,
            Node::Group(_) => Box::pin(self.group(self.target.path.clone(), node)).await,
        }
    }

    /// An array, with the image that it is a level of.
    async fn array(&self, node: Arc<OpenNode>) -> Result<Subject, Problem> {
        let array = Arc::clone(node.array()?);
        let path = array.path().clone();
        let mut subject = Subject::alone(node, array, path.clone(), false);
        // The picture of an array does not fail because of what is above it.
        let Ok(above) = self.finder(&|path| self.may_read(path)).above(&path).await else {
            return Ok(subject);
        };
        subject.above = Some(above.nodes.clone());
        let Some(ImageAbove { path, group, ome, level, list }) = above.into_image() else {
            return Ok(subject);
        };
        let levels = levels(&path, &ome);
        if level < levels.len() {
            subject = Subject { ome: Some(Arc::new(ome)), levels, level, ..subject };
            subject.nodes.push(group);
            subject.depend_on_list(list.as_ref());
            self.sample_smallest(&mut subject).await;
        }
        Ok(subject)
    }

    fn finder<'f>(&'f self, may_read: &'f (dyn Fn(&NodePath) -> bool + Sync)) -> ImageFinder<'f> {
        ImageFinder::new(&self.target.opener, &self.state.engine.cpu, may_read, Instant::now())
    }

    /// Whether the caller may read the documents of a node.
    fn may_read(&self, path: &NodePath) -> bool {
        let need = Permission::derived(Scope::Read, KeyScope::Prefix(path.prefix().clone()));
        Caller::of(&self.head.extensions).rights().allows(&self.target.mount.name, &need)
    }

    /// Takes the sample from the smallest level, if that can be opened.
    async fn sample_smallest(&self, subject: &mut Subject) {
        let Some(path) = subject.levels.last() else { return };
        if let Ok(Some(node)) = self.target.opener.find(path).await
            && let Ok(array) = node.array()
            && array.metadata().shape.len() == subject.array.metadata().shape.len()
            && array.metadata().data_type == subject.array.metadata().data_type
        {
            subject.sampled = Arc::clone(array);
            subject.nodes.push(node);
        }
    }

    /// The picture of a group: of an image, of the first image of a plate, or of the first variable of a dataset.
    async fn group(&self, path: NodePath, group: Arc<OpenNode>) -> Result<Subject, Problem> {
        let Node::Group(metadata) = &group.node else { return self.array(group).await };
        if is_vector_store(&metadata.attributes) {
            return Err(self.is_of_vectors(&path));
        }
        if let Some(ome) = self.ome(&metadata.attributes).await? {
            return self.image(&path, group, ome).await;
        }
        if let Some(image) = self.first_image(&path, &metadata.attributes).await? {
            let node = self.target.opener.open(&image).await?;
            let Node::Group(of_image) = &node.node else { return Err(none(&path)) };
            let ome = self.ome(&of_image.attributes).await?.ok_or_else(|| none(&path))?;
            let mut subject = self.image(&image, Arc::clone(&node), ome).await?;
            subject.nodes.push(group);
            return Ok(subject);
        }
        let mut subject = self.first_variable(&path, &group).await?;
        subject.nodes.push(group);
        Ok(subject)
    }

    /// The problem of a store in Zarr Vector Format, with what shows its points and lines.
    fn is_of_vectors(&self, path: &NodePath) -> Problem {
        let mount = &self.target.mount.name;
        let below: String = path
            .as_str()
            .split('/')
            .filter(|name| !name.is_empty())
            .fold(String::new(), |text, name| text + "/" + &encode(name));
        no_picture(format!(
            "`{path}` is of Zarr Vector Format and has no plane: `/v1/vectors/{mount}{below}` has its points and lines, and \
             `/view/{mount}{below}` draws them"
        ))
    }

    /// The picture of an image, from the group of its levels.
    pub(super) async fn image(
        &self,
        path: &NodePath,
        group: Arc<OpenNode>,
        ome: OmeImage,
    ) -> Result<Subject, Problem> {
        let may_read = |path: &NodePath| self.may_read(path);
        let (ome, list) = self.finder(&may_read).with_list(path, ome).await?;
        let levels = levels(path, &ome);
        let first = levels.first().ok_or_else(|| none(path))?;
        let node = self.target.opener.open(first).await?;
        let array = Arc::clone(node.array()?);
        let mut subject =
            Subject { ome: Some(Arc::new(ome)), levels, ..Subject::alone(node, array, path.clone(), true) };
        subject.nodes.push(group);
        subject.depend_on_list(list.as_ref());
        self.sample_smallest(&mut subject).await;
        Ok(subject)
    }

    /// The image in the attributes of a group.
    pub(super) async fn ome(&self, attributes: &Attributes) -> Result<Option<OmeImage>, Problem> {
        if !attributes.contains_key("ome") && !attributes.contains_key("multiscales") {
            return Ok(None);
        }
        let attributes = attributes.clone();
        let bytes = attributes.text().len() as u64;
        Ok(self.state.engine.cpu.run_document(bytes, move || OmeImage::parse(&attributes)).await?)
    }

    /// What a group is by its attributes.
    pub(super) async fn node(&self, attributes: &Attributes) -> Result<Option<OmeNode>, Problem> {
        let attributes = attributes.clone();
        let bytes = attributes.text().len() as u64;
        let parsed = self.state.engine.cpu.run_document(bytes, move || OmeNode::parse(&attributes)).await?;
        Ok(parsed.map(|(node, _)| node))
    }

    /// The path of the first image of a plate, a well or a collection of images (OME-NGFF, "plate", "well",
    /// "bioformats2raw").
    async fn first_image(
        &self,
        path: &NodePath,
        attributes: &Attributes,
    ) -> Result<Option<NodePath>, Problem> {
        let first = |paths: Vec<String>| paths.into_iter().next();
        let found = match self.node(attributes).await? {
            Some(OmeNode::Plate(plate)) => plate.wells.into_iter().next().map(|(well, _, _)| (well, true)),
            Some(OmeNode::Well(images)) => first(images).map(|image| (image, false)),
            Some(OmeNode::Collection(images)) => {
                Some((first(images).unwrap_or_else(|| "0".to_owned()), false))
            }
            _ => None,
        };
        let Some((below, is_well)) = found else { return Ok(None) };
        let Ok(found) = NodePath::parse(&format!("{}{below}", path.prefix())) else { return Ok(None) };
        if !is_well {
            return Ok(Some(found));
        }
        let well = self.target.opener.open(&found).await?;
        let Node::Group(metadata) = &well.node else { return Ok(None) };
        Box::pin(self.first_image(&found, &metadata.attributes)).await
    }

    /// The first array of a group, by name, that has two dimensions and numbers.
    async fn first_variable(&self, path: &NodePath, group: &Arc<OpenNode>) -> Result<Subject, Problem> {
        let Node::Group(metadata) = &group.node else { return Err(none(path)) };
        let listed = Permission::derived(Scope::List, KeyScope::Prefix(path.prefix().clone()));
        if !Caller::of(&self.head.extensions).rights().allows(&self.target.mount.name, &listed) {
            return Err(none(path));
        }
        let children = self.target.opener.hierarchy().children(path, metadata, MOST_CHILDREN).await?;
        for child in children.children.unwrap_or_default() {
            let Ok(child) = path.child(&child.name) else { continue };
            let node = match self.target.opener.find(&child).await {
                Ok(Some(node)) => node,
                Ok(None) => continue,
                Err(error)
                    if matches!(error.class(), ErrorClass::InvalidMetadata | ErrorClass::Unsupported) =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if let Ok(array) = node.array()
                && is_variable(array)
            {
                let array = Arc::clone(array);
                return Ok(Subject::alone(node, array, child, true));
            }
        }
        Err(none(path))
    }
}

/// Whether an array has a picture, and is not the bounds of a coordinate.
fn is_variable(array: &Array) -> bool {
    let metadata = array.metadata();
    let long = metadata.shape.iter().filter(|&&length| length > 1).count();
    let is_bounds = metadata.shape.len() == 2 && metadata.shape.last() == Some(&2);
    long >= 2
        && !is_bounds
        && !metadata.shape.contains(&0)
        && Decoding::stored(&metadata.data_type, crate::render::raster::Part::Abs).is_some()
}

/// The paths of the levels of an image. A path that is not one of a node ends the list.
fn levels(group: &NodePath, ome: &OmeImage) -> Vec<NodePath> {
    let path = |(level, _): &(String, _)| NodePath::parse(&format!("{}{level}", group.prefix())).ok();
    ome.levels.iter().map_while(path).collect()
}

fn none(path: &NodePath) -> Problem {
    no_picture(format!(
        "the group `{path}` has no picture: it is no OME image or plate, and no array directly below it has two dimensions of \
         numbers that the caller may list; `/v1/nodes` has its children"
    ))
}
