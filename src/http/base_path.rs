//! [`BasePath`]: the prefix of every path of this server as its clients see it, such as `/zarr`.
//!
//! It is configured, or a trusted proxy reports it. The site removes it from the path of a request, and every absolute path
//! in a response gets it again.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, HeaderMap, HeaderValue, Uri, header};

/// Maximum length of a base path, in bytes.
const MOST_BYTES: usize = 256;

/// The prefix of every path: empty, or a path without a trailing slash.
#[derive(Clone, Debug, Default)]
pub(crate) struct BasePath(Option<Arc<str>>);

impl BasePath {
    /// Parses a base path: empty, or segments that need no escaping, each after a slash. `None` if the text is invalid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let fine = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(unreserved);
        let is_base = text.len() <= MOST_BYTES && text.strip_prefix('/')?.split('/').all(fine);
        is_base.then(|| Self(Some(text.into())))
    }

    /// The base path of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Puts the base path into the extensions of a request.
    pub(crate) fn put(self, extensions: &mut Extensions) {
        if self.0.is_some() {
            extensions.insert(self);
        }
    }

    /// This base path followed by an inner one.
    pub(crate) fn join(self, inner: &Self) -> Self {
        match (&self.0, &inner.0) {
            (None, _) => inner.clone(),
            (_, None) => self,
            (Some(outer), Some(inner)) => Self(Some(format!("{outer}{inner}").into())),
        }
    }

    /// Whether the base path is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text to put before a path.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The rest of a path after the base path, which is empty or begins with a slash; `None` for a path outside it.
    pub(crate) fn strip<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(self.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The URL without the base path; `None` for a path outside it.
    pub(crate) fn strip_uri(&self, uri: &Uri) -> Option<Uri> {
        self.strip(uri.path())?;
        let rest = uri.path_and_query()?.as_str().get(self.as_str().len()..)?;
        let rest: PathAndQuery =
            if rest.starts_with('/') { rest.parse().ok()? } else { format!("/{rest}").parse().ok()? };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(rest);
        Uri::from_parts(parts).ok()
    }

    /// Prepends the base path to the `Location` of a response, if that is an absolute path.
    pub(crate) fn rewrite_location(&self, headers: &mut HeaderMap) {
        let Some(base) = &self.0 else { return };
        let Some(to) = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()) else { return };
        if to.starts_with('/')
            && !to.starts_with("//")
            && let Ok(to) = HeaderValue::try_from(format!("{base}{to}"))
        {
            headers.insert(header::LOCATION, to);
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BasePath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_path_that_needs_no_escaping() {
        for text in ["", "/zarr", "/a/b-c_d.e~f"] {
            assert_eq!(BasePath::parse(text).unwrap().as_str(), text);
        }
        for text in ["/", "zarr", "/zarr/", "//zarr", "/a//b", "/a/..", "/%41", "/a b", "/a?b", "/é", "/a\""]
        {
            assert!(BasePath::parse(text).is_none(), "{text}");
        }
        assert!(BasePath::parse(&format!("/{}", "x".repeat(256))).is_none());
    }

    #[test]
    fn urls_are_stripped_by_whole_segments() {
        let base = BasePath::parse("/zarr").unwrap();
        for (url, expected) in [
            ("/zarr/store/m/a?b=/zarr", Some("/store/m/a?b=/zarr")),
            ("/zarr", Some("/")),
            ("/zarr?a", Some("/?a")),
            ("/zarr/", Some("/")),
            ("/zarr//a", Some("//a")),
            ("http://h:1/zarr/a", Some("http://h:1/a")),
            ("/zarrs/a", None),
            ("/ZARR/a", None),
            ("//zarr/a", None),
            ("/%7aarr/a", None),
            ("/", None),
        ] {
            let stripped = base.strip_uri(&url.parse().unwrap()).map(|url| url.to_string());
            assert_eq!(stripped.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn base_paths_are_joined() {
        let base = |text| BasePath::parse(text).unwrap();
        for (outer, inner, both) in [("", "", ""), ("/a", "", "/a"), ("", "/b", "/b"), ("/a", "/b", "/a/b")] {
            assert_eq!(base(outer).join(&base(inner)).as_str(), both);
        }
    }

    #[test]
    fn only_absolute_paths_in_location_get_the_base_path() {
        for (to, led) in [
            ("/docs/", "/zarr/docs/"),
            ("./a/", "./a/"),
            ("https://bucket.example/a", "https://bucket.example/a"),
            ("//other.example/", "//other.example/"),
        ] {
            let mut headers = HeaderMap::from_iter([(header::LOCATION, HeaderValue::from_static(to))]);
            BasePath::parse("/zarr").unwrap().rewrite_location(&mut headers);
            assert_eq!((headers.len(), headers[header::LOCATION].to_str().unwrap()), (1, led));
        }
    }
}
