//! The page that shows the `OpenAPI` document, by Swagger UI.

use axum::http::{HeaderValue, header};
use axum::routing;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa_swagger_ui::SwaggerUi;

use crate::http::route::{AdmittedBy, Resource, RouteSpec};
use crate::services::state::AppState;

/// The page.
const PAGE: RouteSpec =
    RouteSpec::new("/docs", Resource::Public).with_slash("/docs/").admitted_by(AdmittedBy::Exempt);
/// Its files.
const FILES: RouteSpec =
    RouteSpec::new("/docs/{*rest}", Resource::Public).admitted_by(AdmittedBy::Exempt).fixed();
/// The script that starts it, in place of the one of Swagger UI.
const START: RouteSpec =
    RouteSpec::new("/docs/swagger-initializer.js", Resource::Public).admitted_by(AdmittedBy::Exempt).fixed();

/// The routes of the page.
pub(super) const ROUTES: [&RouteSpec; 3] = [&PAGE, &FILES, &START];

/// What the page may load: its own files, the pictures within its style sheet, and responses of this server, of which pictures are
/// shown as blobs. Its scripts set inline styles.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
);

/// The page and its files.
pub(super) fn router() -> axum::Router<AppState> {
    let start = ([(header::CONTENT_TYPE, "text/javascript")], include_str!("documentation_page.js"));
    axum::Router::from(SwaggerUi::new(PAGE.template))
        .route(START.template, routing::get(|| async move { start }))
        .layer(SetResponseHeaderLayer::overriding(header::CONTENT_SECURITY_POLICY, POLICY))
}
