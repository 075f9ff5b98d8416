//! PROPFIND (RFC 4918, section 9.1): the properties of a key, or of a prefix with the keys and prefixes below it.
//!
//! A path without a trailing slash is a key if that exists, else a prefix; with a slash it is a prefix. The backend is
//! asked only for what the response contains: for a prefix alone, whether one key is below it. A listing that fails after
//! its start aborts the connection, so that a client never takes it for complete.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{multistatus, request_body};
use crate::api::store::{list, listing_text};
use crate::error::ErrorClass;
use crate::http::base_path::BasePath;
use crate::http::path::KeyOrPrefix;
use crate::http::problem::Problem;
use crate::http::webdav_headers::{Depth, depth};
use crate::key::{StoreKey, StorePrefix};
use crate::services::extract::StoreTarget;
use crate::services::state::AppState;
use crate::store::{DirEntry, ListEntry, StoreError};

/// Responds to PROPFIND.
pub(crate) async fn propfind(
    state: &AppState,
    target: &StoreTarget,
    request: Request,
) -> Result<Response, Problem> {
    let depth = depth(request.headers())?;
    let base = BasePath::of(request.extensions()).as_str().to_owned() + &target.base();
    let (head, body) = request.into_parts();
    request_body::check(body, &state.options).await?;
    let target = &*target.charged_to_request(&state.traffic.admission, &head.extensions);
    let store = &target.mount.store;
    let prefix = match &target.place {
        KeyOrPrefix::Prefix(prefix) => prefix.clone(),
        KeyOrPrefix::Key(key) => match store.head(key).await? {
            Some(info) => {
                let mut page = multistatus::HEAD.to_owned();
                multistatus::push_key(&mut page, &base, &ListEntry { key: key.clone(), info });
                return Ok(answer(Body::from(page + multistatus::FOOT)));
            }
            None => key.as_prefix(),
        },
    };
    let listed = match depth {
        Depth::Zero => alone(target, &base, &prefix).await,
        Depth::One => with_what_is_below(target, base, prefix, false).await,
        Depth::Infinity => with_what_is_below(target, base, prefix, true).await,
    };
    match listed {
        Ok(Some(body)) => Ok(answer(body)),
        Ok(None) => Err(Problem::from_class(ErrorClass::NotFound)
            .detail("the store has no value of this key, and no key is below it as a prefix")),
        Err(error @ StoreError::NotListable) => Err(Problem::from(error).allow("GET, HEAD, OPTIONS")),
        Err(error) => Err(error.into()),
    }
}

fn answer(body: Body) -> Response {
    let head =
        [(header::CONTENT_TYPE, "application/xml; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (StatusCode::MULTI_STATUS, head, body).into_response()
}

/// The prefix and nothing below it.
async fn alone(target: &StoreTarget, base: &str, prefix: &StorePrefix) -> Result<Option<Body>, StoreError> {
    if !prefix.is_root() && !list::exists(&target.mount, prefix).await? {
        return Ok(None);
    }
    let mut page = multistatus::HEAD.to_owned();
    multistatus::push_prefix(&mut page, base, prefix.as_str());
    Ok(Some(Body::from(page + multistatus::FOOT)))
}

/// The prefix and the entries one level below it, or with `recursive` every key and prefix below it. The response is
/// streamed while the backend lists, so that memory does not grow with the length of the listing.
async fn with_what_is_below(
    target: &StoreTarget,
    base: String,
    prefix: StorePrefix,
    recursive: bool,
) -> Result<Option<Body>, StoreError> {
    let entries = listing_text::entries(&*target.mount.store, &prefix, recursive, "");
    let mut head = multistatus::HEAD.to_owned();
    multistatus::push_prefix(&mut head, &base, prefix.as_str());
    let empty = prefix.is_root().then(|| format!("{head}{}", multistatus::FOOT));
    let mut before: Option<StoreKey> = None;
    let write = move |page: &mut String, entry: DirEntry| match entry {
        DirEntry::Prefix(below) => multistatus::push_prefix(page, &base, below.as_str()),
        DirEntry::Key(entry) => {
            for entered in entered(&prefix, before.as_ref(), &entry.key) {
                multistatus::push_prefix(page, &base, entered);
            }
            multistatus::push_key(page, &base, &entry);
            before = Some(entry.key);
        }
    };
    Ok(listing_text::text(entries, head, write, multistatus::FOOT.to_owned())
        .await?
        .or(empty.map(Body::from)))
}

/// The prefixes below `top` that contain a key but not the key listed before it. Keys are sorted, so that the keys of one
/// prefix are consecutive, and each prefix is entered once.
fn entered<'a>(
    top: &StorePrefix,
    before: Option<&StoreKey>,
    key: &'a StoreKey,
) -> impl Iterator<Item = &'a str> {
    let (text, above) = (key.as_str(), top.as_str().len());
    let ends = text.match_indices('/').map(|(at, _)| at + 1).filter(move |end| *end > above);
    ends.filter_map(move |end| text.get(..end))
        .filter(move |prefix| !before.is_some_and(|before| before.as_str().starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_listed_once_and_before_its_keys() {
        let keys = ["a", "a.b", "a/0", "a/b/0", "a/b/1", "a/c/d/0", "ab/0", "b/0"];
        let list = |top: &str| {
            let top = StorePrefix::parse(top).unwrap();
            let (mut before, mut seen) = (None, Vec::new());
            for key in keys.iter().filter(|key| key.starts_with(top.as_str())) {
                let key = StoreKey::parse(key).unwrap();
                seen.extend(entered(&top, before.as_ref(), &key).map(str::to_owned));
                seen.push(key.as_str().to_owned());
                before = Some(key);
            }
            seen
        };
        assert_eq!(
            list(""),
            [
                "a", "a.b", "a/", "a/0", "a/b/", "a/b/0", "a/b/1", "a/c/", "a/c/d/", "a/c/d/0", "ab/",
                "ab/0", "b/", "b/0"
            ]
        );
        assert_eq!(list("a/"), ["a/0", "a/b/", "a/b/0", "a/b/1", "a/c/", "a/c/d/", "a/c/d/0"]);
        assert_eq!(list("a/b/"), ["a/b/0", "a/b/1"]);
    }
}
