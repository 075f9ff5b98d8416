//! The errors of DAP: the error object of each problem ("DAP 2.0", section 7.2.4), or its error document in DAP4.
//!
//! Handlers return the same problems as all others. The format is selected outside all layers that can reject a request, so
//! that limits, rights and overload are also reported in it.

use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;

use super::text_response::{CONTENT_DESCRIPTION, TEXT, XDAP, XDAP_VERSION};
use crate::http::dap_path::DapResponse;
use crate::http::problem::{Dialect, Problem};
use crate::http::route::RouteSpec;
use crate::render::dap4::dap4_error;

/// The media type of error documents of DAP4.
const ERROR: HeaderValue = HeaderValue::from_static("application/vnd.opendap.dap4.error+xml");

/// The error format for responses of the DAP routes and of the layers before them.
#[derive(Debug)]
pub(crate) struct DapErrors {
    /// The requested resource: a raw path.
    resource: String,
    /// Whether the response is one of DAP4.
    is_of_dap4: bool,
}

impl DapErrors {
    /// The error format, if a request is for a DAP route.
    pub(crate) fn of(route: Option<&RouteSpec>, uri: &Uri) -> Option<Self> {
        route.is_some_and(|route| route.speaks_dap).then(|| Self {
            resource: uri.path().to_owned(),
            is_of_dap4: DapResponse::of_path(uri.path()).is_of_dap4(),
        })
    }

    /// Selects the error format for a response.
    pub(crate) fn render(self, answer: &mut Response) {
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            let (description, version) = if self.is_of_dap4 {
                (HeaderValue::from_static("dap4-error"), HeaderValue::from_static("4.0"))
            } else {
                (HeaderValue::from_static("dods-error"), XDAP_VERSION)
            };
            let put: [(HeaderName, HeaderValue); 2] = [(CONTENT_DESCRIPTION, description), (XDAP, version)];
            answer.headers_mut().extend(put);
        }
        let Self { resource, is_of_dap4 } = self;
        let dialect = if is_of_dap4 {
            Dialect { resource, content_type: ERROR, write: xml_document }
        } else {
            Dialect { resource, content_type: TEXT, write: document }
        };
        answer.extensions_mut().insert(dialect);
    }
}

/// The error document of DAP4.
fn xml_document(problem: &Problem, _: &str, request_id: &str) -> String {
    dap4_error(problem.status().as_u16(), &format!("{} (request {request_id})", problem.message()))
}

/// The error object. Clients show the message, and some of them the code.
fn document(problem: &Problem, _: &str, request_id: &str) -> String {
    let message = problem.message().replace('\\', "\\\\").replace('"', "\\\"");
    let code = problem.status().as_u16();
    format!("Error {{\n    code = {code};\n    message = \"{message} (request {request_id})\";\n}};\n")
}
