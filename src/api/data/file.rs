//! [`file`]: the response with a file for other programs: NetCDF of an array or a group, GeoTIFF of a plane of an array.

use std::time::Instant;

use axum::http::request::Parts;
use axum::response::Response;

use super::opening::open;
use super::query::DataQuery;
use crate::api::export::geotiff::GeoTiffRequest;
use crate::api::export::netcdf::NetcdfRequest;
use crate::api::export::source_finder::SourceFinder;
use crate::api::export::sources::{ExportSource, ExportSources};
use crate::api::label_params::{LabelPositions, positions, positions_along};
use crate::auth::caller::Caller;
use crate::error::ErrorClass;
use crate::hierarchy::Node;
use crate::http::problem::Problem;
use crate::reduce::CfError;
use crate::render::netcdf::NetcdfVariant;
use crate::render::{Format, geotiff};
use crate::services::extract::NodeTarget;
use crate::services::state::AppState;

/// The response with a file in a format: of an array and its coordinates, or of the variables of a group.
pub(super) async fn file(
    state: &AppState,
    head: &Parts,
    target: &NodeTarget,
    (query, format): (&DataQuery, &'static Format),
    started: Instant,
) -> Result<Response, Problem> {
    let invalid = |detail: String| Problem::from_class(ErrorClass::InvalidRequest).detail(detail);
    let name = format.name;
    let (fields, dtype) = (&query.fields.fields, query.format.dtype());
    if query.reduction.reduces() || query.over.reduces() || fields.is_some() || dtype.is_some() {
        return Err(invalid(format!(
            "`format={name}` has elements as they are stored: leave out `downsample`, `fit`, `reduce.NAME`, `fields` and `dtype`"
        )));
    }
    let is_plane = format == &geotiff::FORMAT;
    let node = open(head, target, &target.path, &query.array).await?;
    let rights = Caller::of(&head.extensions).rights();
    let finder = SourceFinder { target, rights, began: started };
    let names = query.variables.vars.as_deref();
    let request = (state, head, target);
    let metadata = match &node.node {
        Node::Group(_) if is_plane => {
            return Err(invalid("`format=tiff` is one plane of an array, and this is a group".to_owned()));
        }
        Node::Group(_) => {
            let arrays = finder.open_group(&target.path, node, names).await?;
            let (shape, dimensions) = arrays.dimensions(&query.selection);
            let dimensions = (shape.as_slice(), dimensions.as_slice());
            let positions =
                positions_along(request, &query.selection, arrays.first_path(), dimensions).await?;
            let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
            let sources = decoded(state, finder.select(arrays, selection).await?, query).await?;
            let netcdf = NetcdfRequest::new(sources, variant(query), names.is_some())?;
            return Ok(labelled(netcdf.respond(state, target, head).await?, positions.as_ref()));
        }
        Node::Array(metadata) => metadata,
    };
    if names.is_some() {
        return Err(invalid("`vars` names variables of a group, and this is an array".to_owned()));
    }
    query.array.check_shape(&metadata.shape)?;
    let positions = positions(request, &query.selection, &target.path, metadata, None).await?;
    let selection = positions.as_ref().map_or(&query.selection, |positions| &positions.selection);
    let subset = selection.subset(metadata)?;
    if is_plane {
        let tiff = GeoTiffRequest::new(state, head, &finder, node, subset, query.format.decodes()).await?;
        return Ok(labelled(tiff.respond(state, target, head).await?, positions.as_ref()));
    }
    let sources = decoded(state, finder.of_array(node, subset).await?, query).await?;
    let netcdf = NetcdfRequest::new(sources, variant(query), names.is_some())?;
    Ok(labelled(netcdf.respond(state, target, head).await?, positions.as_ref()))
}

/// The response, with the positions that labels were resolved to.
fn labelled(mut response: Response, positions: Option<&LabelPositions>) -> Response {
    if let Some(positions) = positions {
        positions.put_headers(response.headers_mut());
    }
    response
}

/// The arrays as the query wants their elements: as they are stored, or decoded.
async fn decoded(
    state: &AppState,
    mut sources: ExportSources,
    query: &DataQuery,
) -> Result<ExportSources, Problem> {
    if !query.format.decodes() {
        return Ok(sources);
    }
    // The attributes that remain are copied.
    let bytes = sources.attribute_bytes();
    let decode = move || {
        sources.sources.iter_mut().try_for_each(ExportSource::decode)?;
        Ok::<_, CfError>(sources)
    };
    Ok(state.engine.cpu.run_document(bytes, decode).await??)
}

fn variant(query: &DataQuery) -> NetcdfVariant {
    if query.format.is_classic() { NetcdfVariant::Classic } else { NetcdfVariant::Smallest }
}
