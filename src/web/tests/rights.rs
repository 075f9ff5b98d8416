//! Tests of the access rules: every documented route and method has a rule for the scopes that it needs.

use axum::http::Method;

use crate::auth::scopes;
use crate::http::route::RouteSpec;
use crate::web::router;

/// The methods of WebDAV that the store routes have.
const OF_WEBDAV: [&str; 4] = ["PROPFIND", "MKCOL", "COPY", "MOVE"];

fn has_rule(spec: &RouteSpec, method: &str) -> bool {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    [false, true].iter().all(|is_prefix| scopes(spec.resource, &method, *is_prefix).is_some())
}

#[test]
fn every_route_and_method_has_a_rule() {
    let api: serde_json::Value = serde_json::from_str(&router::openapi()).unwrap();
    let mut checked = 0;
    for (path, item) in api["paths"].as_object().unwrap() {
        let spec = router::spec_of_documented(path).unwrap_or_else(|| panic!("{path} has no spec"));
        let methods = ["get", "head", "put", "post", "patch", "delete"];
        for method in methods.iter().filter(|method| item.get(**method).is_some()) {
            assert!(has_rule(spec, &method.to_uppercase()), "{method} {path} has no rule");
            checked += 1;
        }
        if path.starts_with("/store/") && path.ends_with("{key}") {
            assert!(OF_WEBDAV.iter().all(|method| has_rule(spec, method)), "{path}");
        }
    }
    assert!(checked > 60, "{checked}");
    let node = router::spec_of_documented("/v1/nodes/{mount}").unwrap();
    assert!(!has_rule(node, "MKCOL"));
}
