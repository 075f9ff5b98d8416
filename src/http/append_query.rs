//! The query parameter `append`, by which a POST of elements is a write and not a read.

use axum::http::Uri;

/// The name of the parameter.
pub(crate) const APPEND: &str = "append";

/// Whether a request has the parameter. Access control asks before the handler parses the query.
pub(crate) fn appends(uri: &Uri) -> bool {
    let mut pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.any(|(name, _)| name == APPEND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_is_found_however_it_is_spelled() {
        for (query, expected) in [
            ("append=time", true),
            ("format=npy&append", true),
            ("%61ppend=0", true),
            ("format=append", false),
            ("", false),
        ] {
            let uri: Uri = format!("/v1/data/m/a?{query}").parse().unwrap();
            assert_eq!(appends(&uri), expected, "{query}");
        }
    }
}
