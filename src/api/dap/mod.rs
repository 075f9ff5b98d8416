//! `/dap/{mount}/{path}`: groups and arrays for clients of DAP2 and DAP4, such as those of netCDF-C.
//!
//! A group is a dataset of its arrays, an array one of itself and its coordinates. Errors are the error objects of DAP with
//! the status that the same problem has on other routes.

mod ascii;
mod dap4;
mod data;
mod error;
mod info;
mod open_dataset;
mod sent_array;
mod text_response;
mod wide_integers;

pub(crate) use error::DapErrors;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use utoipa::IntoResponses;
use utoipa_axum::routes;

use crate::admission::AdmissionRequest;
use crate::api::data::open;
use crate::api::documented::{ConditionResponses, MountParam};
use crate::api::export::respond::described_bytes;
use crate::api::selection::ArrayParams;
use crate::http::dap_path::DapResponse;
use crate::http::problem::Problem;
use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::render::dap::{ConstrainedDataset, Constraint, DapError, das, dds};
use crate::services::extract::NodeTarget;
use crate::services::route::Route;
use crate::services::state::AppState;
use data::DapRequest;
use open_dataset::OpenDataset;
use text_response::{text_response, with_version};

/// A dataset.
pub(crate) const DAP: RouteSpec =
    RouteSpec::new("/dap/{mount}/{*path}", Resource::Dap).admitted_by(AdmittedBy::Handler).speaks_dap();

/// The dataset at the root of a mount; the suffix is behind the name of the mount.
pub(crate) const ROOT_DAP: RouteSpec = RouteSpec::new("/dap/{mount}", Resource::Dap)
    .with_slash("/dap/{mount}/")
    .admitted_by(AdmittedBy::Handler)
    .speaks_dap();

/// The routes of DAP.
pub(crate) fn routes() -> Vec<Route> {
    vec![Route::new(&DAP, routes!(get_dap)), Route::new(&ROOT_DAP, routes!(get_root_dap))]
}

/// Responses of the routes of DAP.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes the answers for the API document")]
pub(crate) enum DapResponses {
    /// The response that the suffix of the path names: `.dds`, `.das`, `.ascii`, `.info` and `.ver` are text, `.dods` is the
    /// descriptor and the values in XDR; `.dmr` and `.dmr.xml` are the metadata of DAP4, `.dap` its values.
    #[response(status = 200, content_type = "text/plain")]
    Dataset,
    /// The requested byte range of the values.
    #[response(status = 206, content_type = "application/octet-stream")]
    Range,
    /// The constraint is invalid, or does not fit the dataset.
    #[response(status = 400)]
    NotUnderstood,
    /// The mount or the node does not exist.
    #[response(status = 404)]
    NotFound,
    /// The values would exceed a limit.
    #[response(status = 413)]
    TooLarge,
    /// The range starts after the end of the values.
    #[response(status = 416)]
    RangeNotSatisfiable,
}

/// Read a group or an array by DAP2 or DAP4
///
/// The path of a node with a suffix: `.dds` is the dataset descriptor, `.das` has the attributes, `.dods` the values, `.ascii`
/// the values as text, `.info` describes the dataset for people and lists what is left out, and `.ver` has the version. The
/// query is a constraint expression such as `air[0:1:9][2:4][7],time`: start, stride and last index of each dimension. Clients
/// are given the URL without a suffix. Arrays whose dimensions have coordinates are grids. Responses have the order of the
/// dataset. Packed values stay packed.
///
/// Of DAP4, `.dmr` and `.dmr.xml` are the metadata of the group and of all groups in it, and `.dap` the values: the metadata of
/// what is selected and then the values, in chunks, each variable with a CRC-32 behind it unless `dap4.checksum=false`.
/// `dap4.ce=/time=[0:9];/g/air[][0:2:8][7]` selects of dimensions and variables. What cannot be finished ends with an error in the
/// last chunk.
#[utoipa::path(
    method(get, head),
    path = DAP.template,
    tag = "data",
    params(MountParam, ("path" = String, Path, description = "Path of the node, then the suffix of the response")),
    responses(DapResponses, ConditionResponses)
)]
pub(crate) async fn get_dap(State(state): State<AppState>, request: Request) -> Result<Response, Problem> {
    let head = request.into_parts().0;
    // Boxed, because the large future would enlarge every future around it.
    Box::pin(dap(&state, &head)).await
}

/// Read the group or the array at the root of a mount by DAP2 or DAP4
#[utoipa::path(
    method(get, head),
    path = ROOT_DAP.template,
    tag = "data",
    params(MountParam),
    responses(DapResponses, ConditionResponses)
)]
pub(crate) async fn get_root_dap(state: State<AppState>, request: Request) -> Result<Response, Problem> {
    get_dap(state, request).await
}

async fn dap(state: &AppState, head: &Parts) -> Result<Response, Problem> {
    let started = Instant::now();
    state.traffic.admission.try_reject(AdmissionRequest::to_elements(head))?;
    let target = NodeTarget::new(&state.mounts, &DAP, &head.uri, &head.extensions)?;
    let asked = DapResponse::of_path(head.uri.path());
    if asked == DapResponse::Ver {
        let text = format!("Core version: DAP/2.0\nServer version: zarrd/{}\n", env!("CARGO_PKG_VERSION"));
        return Ok(text_response(head, with_version(text), HeaderValue::from_static("dods-version")));
    }
    let node = open(head, &target, &target.path, &ArrayParams::default()).await?;
    if asked.is_of_dap4() {
        return dap4::dap4(state, head, &target, node, started, asked).await;
    }
    let mut permit = state.traffic.admission.acquire(AdmissionRequest::to_elements(head), 0).await?;
    let (opened, held) = OpenDataset::new(state, head, &target, node, started, &mut permit).await?;
    let (dataset, omitted) = (Arc::clone(&opened.dataset), opened.sources.omitted.clone());
    let query = head.uri.query().unwrap_or_default().to_owned();
    let describe = move || {
        let constrained = ConstrainedDataset::new(&dataset, &Constraint::parse(&query)?)?;
        let text = match asked {
            DapResponse::Das => das(&dataset),
            DapResponse::Info | DapResponse::Ver => info::info(&dataset, &omitted),
            DapResponse::Dds
            | DapResponse::Dods
            | DapResponse::Ascii
            | DapResponse::Dmr
            | DapResponse::Dap => dds(&dataset, &constrained),
        };
        Ok::<_, DapError>((constrained, with_version(text)))
    };
    let bytes = described_bytes(&opened.sources);
    let (constrained, text) = state.engine.cpu.run_document(bytes, describe).await??;
    let description = match asked {
        DapResponse::Dods | DapResponse::Ascii => {
            let request = DapRequest { opened, constrained, described: text.0, held };
            // With its permit: one request must not wait for what it holds itself.
            drop(permit);
            return request.respond(state, &target, head, asked).await;
        }
        DapResponse::Dds | DapResponse::Dmr | DapResponse::Dap => "dods-dds",
        DapResponse::Das => "dods-das",
        DapResponse::Info | DapResponse::Ver => "dods-info",
    };
    let answer = text_response(head, text, HeaderValue::from_static(description));
    Ok(permit.hold(answer))
}
