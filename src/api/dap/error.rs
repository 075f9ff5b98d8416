//! The errors of DAP: the error object of each problem ("DAP 2.0", section 7.2.4).
//!
//! Handlers return the same problems as all others. The format is selected outside all layers that can reject a request, so
//! that limits, rights and overload are also reported in it.

use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;

use super::text_response::{CONTENT_DESCRIPTION, TEXT, XDAP, XDAP_VERSION};
use crate::http::problem::{Dialect, Problem};
use crate::http::route::RouteSpec;

/// The error format for responses of the DAP routes and of the layers before them.
#[derive(Debug)]
pub(crate) struct DapErrors {
    /// The requested resource: a raw path.
    resource: String,
}

impl DapErrors {
    /// The error format, if a request is for a DAP route.
    pub(crate) fn of(route: Option<&RouteSpec>, uri: &Uri) -> Option<Self> {
        route.is_some_and(|route| route.speaks_dap).then(|| Self { resource: uri.path().to_owned() })
    }

    /// Selects the error format for a response.
    pub(crate) fn render(self, answer: &mut Response) {
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            let put: [(HeaderName, HeaderValue); 2] =
                [(CONTENT_DESCRIPTION, HeaderValue::from_static("dods-error")), (XDAP, XDAP_VERSION)];
            answer.headers_mut().extend(put);
        }
        let Self { resource } = self;
        answer.extensions_mut().insert(Dialect { resource, content_type: TEXT, write: document });
    }
}

/// The error object. Clients show the message, and some of them the code.
fn document(problem: &Problem, _: &str, request_id: &str) -> String {
    let message = problem.message().replace('\\', "\\\\").replace('"', "\\\"");
    let code = problem.status().as_u16();
    format!("Error {{\n    code = {code};\n    message = \"{message} (request {request_id})\";\n}};\n")
}
