//! [`ImageGrid`]: the images of a plate or of a well, which one picture shows side by side.
//!
//! Of a plate, the first image of each well stands where the well is; wells without images stay empty. The images of a well
//! fill a square (OME-NGFF, "plate" and "well").

use std::sync::Arc;

use axum::http::request::Parts;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::opening::Opening;
use super::subject::Subject;
use crate::array::{ArrayError, OpenNode};
use crate::conventions::{OmeNode, PlateSummary};
use crate::error::{Classify, ErrorClass};
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::key::NodePath;
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// Most images of a picture. The picture of a larger plate is that of its first image.
const MOST_IMAGES: usize = 400;
/// Images that are opened concurrently.
const CONCURRENCY: usize = 8;

/// Why a node has no picture, today and later.
const UNUSABLE: [ErrorClass; 5] = [
    ErrorClass::NotFound,
    ErrorClass::InvalidMetadata,
    ErrorClass::CorruptData,
    ErrorClass::Unsupported,
    ErrorClass::TooLarge,
];

/// The images of a plate or a well, in rows and columns.
#[derive(Debug)]
pub(crate) struct ImageGrid {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    /// The images that could be opened, each with its row and column; at least one.
    pub(crate) images: Vec<(u64, u64, Subject)>,
}

/// What a picture shows.
#[derive(Debug)]
pub(crate) enum Pictured {
    /// One array or image.
    One(Box<Subject>),
    /// The images of a plate or a well.
    Grid(ImageGrid),
}

/// Where an image is, and in which group.
struct Place {
    row: u64,
    column: u64,
    path: NodePath,
    /// Whether the path is that of a well.
    is_well: bool,
}

impl Pictured {
    /// Opens what a request names; of a plate or a well, all images that its picture shows.
    ///
    /// # Errors
    /// 404; 422 for a group without a picture.
    pub(crate) async fn open(state: &AppState, head: &Parts, target: &NodeTarget) -> Result<Self, Problem> {
        let opening = Opening { state, head, target };
        let node = opening.requested().await?;
        if let Node::Group(metadata) = &node.node
            && let Some(listed) = opening.node(&metadata.attributes).await?
            && let Some(grid) = Box::pin(ImageGrid::open(&opening, &target.path, &node, &listed)).await?
        {
            return Ok(Self::Grid(grid));
        }
        Ok(Self::One(Box::new(opening.one(node).await?)))
    }
}

impl ImageGrid {
    /// The images that the attributes of a group list, with this group among what they depend on; `None` if the group is
    /// neither a plate nor a well, or one with too many images or none that can be opened.
    ///
    /// # Errors
    /// Those of opening nodes that exist, but not for being invalid.
    async fn open(
        opening: &Opening<'_>,
        path: &NodePath,
        group: &Arc<OpenNode>,
        node: &OmeNode,
    ) -> Result<Option<Self>, Problem> {
        let (rows, columns, places) = match node {
            OmeNode::Plate(plate) => places_of_plate(path, plate),
            OmeNode::Well(images) => places_of_well(path, images),
            _ => return Ok(None),
        };
        if !(2..=MOST_IMAGES).contains(&places.len()) {
            return Ok(None);
        }
        let images: Vec<(u64, u64, Option<Subject>)> = stream::iter(places)
            .map(|place| async move {
                let subject = if place.is_well {
                    of_well(opening, &place.path).await?
                } else {
                    of_image(opening, &place.path).await?
                };
                Ok::<_, Problem>((place.row, place.column, subject))
            })
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        let opened = images.into_iter().filter_map(|(row, column, subject)| {
            let mut subject = subject?;
            subject.nodes.push(Arc::clone(group));
            Some((row, column, subject))
        });
        let images: Vec<_> = opened.collect();
        Ok((!images.is_empty()).then_some(Self { rows, columns, images }))
    }
}

fn places_of_plate(path: &NodePath, plate: &PlateSummary) -> (u64, u64, Vec<Place>) {
    let (rows, columns) = (plate.rows.len() as u64, plate.columns.len() as u64);
    let place = |(well, row, column): &(String, u64, u64)| {
        let path = NodePath::parse(&format!("{}{well}", path.prefix())).ok()?;
        (*row < rows && *column < columns).then_some(Place {
            row: *row,
            column: *column,
            path,
            is_well: true,
        })
    };
    (rows, columns, plate.wells.iter().filter_map(place).collect())
}

fn places_of_well(path: &NodePath, images: &[String]) -> (u64, u64, Vec<Place>) {
    let count = images.len() as u64;
    let columns = (1..=count).find(|side| side * side >= count).unwrap_or(1);
    let place = |(at, image): (u64, &String)| {
        let path = NodePath::parse(&format!("{}{image}", path.prefix())).ok()?;
        Some(Place { row: at / columns, column: at % columns, path, is_well: false })
    };
    (count.div_ceil(columns), columns, (0..).zip(images).filter_map(place).collect())
}

/// The first image of a well; `None` if there is none.
async fn of_well(opening: &Opening<'_>, path: &NodePath) -> Result<Option<Subject>, Problem> {
    let Some(well) = found(opening, path).await? else { return Ok(None) };
    let Node::Group(group) = &well.node else { return Ok(None) };
    let Some(OmeNode::Well(images)) = opening.node(&group.attributes).await? else { return Ok(None) };
    let Some(first) = images.first() else { return Ok(None) };
    let Ok(image) = NodePath::parse(&format!("{}{first}", path.prefix())) else { return Ok(None) };
    let subject = of_image(opening, &image).await?;
    Ok(subject.map(|mut subject| {
        subject.nodes.push(well);
        subject
    }))
}

/// The image of a group; `None` if there is none.
async fn of_image(opening: &Opening<'_>, path: &NodePath) -> Result<Option<Subject>, Problem> {
    let Some(node) = found(opening, path).await? else { return Ok(None) };
    let Node::Group(group) = &node.node else { return Ok(None) };
    let Some(image) = opening.ome(&group.attributes).await? else { return Ok(None) };
    match opening.image(path, node, image).await {
        Ok(subject) => Ok(Some(subject)),
        // A level that is broken makes one place empty.
        Err(problem) if UNUSABLE.iter().any(|class| class.as_str() == problem.code()) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// A node; `None` if there is none that can be read.
async fn found(opening: &Opening<'_>, path: &NodePath) -> Result<Option<Arc<OpenNode>>, ArrayError> {
    match opening.target.opener.find(path).await {
        Err(error) if UNUSABLE.contains(&error.class()) => Ok(None),
        found => found,
    }
}
