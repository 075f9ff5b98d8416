//! `/view/{mount}/{path}`: nodes as pages for people, with their script and signing in.
//!
//! The templates are in `page`; here is what they show, and the headers of pages: a strict content security policy, so
//! that nothing that attributes hold can run or load anything.

mod children;
mod coordinates;
mod error_page;
mod headers;
mod home;
mod labelled;
mod labels;
mod links;
mod listing;
mod node;
mod script;
mod session;
mod site;
mod warnings;

pub(crate) use error_page::ErrorPage;
pub(crate) use home::home;
pub(crate) use links::view_of;

use axum::routing::MethodRouter;
use utoipa_axum::routes;

use crate::http::route::RouteSpec;
use crate::services::route::Route;
use crate::services::state::AppState;

/// The routes of pages.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(&node::VIEW, routes!(node::get_view)),
        Route::new(&node::ROOT_VIEW, routes!(node::get_root_view)),
    ]
}

/// The routes that only pages use, which the `OpenAPI` document omits.
pub(crate) fn undocumented_routes() -> [(&'static RouteSpec, MethodRouter<AppState>); 2] {
    [script::route(), session::route()]
}
