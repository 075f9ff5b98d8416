//! A copy of a store or a view of it, as a client makes one: it lists, and reads every key that is listed.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use zarrd::store::SharedStore;

use super::hierarchy::memory;
use super::server::{Server, put};

/// Every key below a URL, which ends in a slash, with its value. What the listing says of each is compared with what GET
/// says, and of every fourth with what HEAD says.
pub async fn read_all(server: &Server, url: &str) -> BTreeMap<String, Bytes> {
    let mut values = BTreeMap::new();
    for (number, (key, size, etag)) in list_all(server, url, None).await.into_iter().enumerate() {
        let path: Vec<String> = key.split('/').map(encode).collect();
        let value_url = format!("{}/{}", base(url), path.join("/"));
        let value = server.get(&value_url).await;
        assert_eq!(value.status, StatusCode::OK, "{value_url}: {:?}", value.body);
        assert_eq!((value.body.len() as u64, value.header("etag")), (size, &*etag), "{value_url}");
        if number % 4 == 0 {
            let head = server.ask(Method::HEAD, &value_url, &[]).await;
            assert_eq!((head.header("content-length"), head.header("etag")), (&*size.to_string(), &*etag));
        }
        assert!(values.insert(key, value.body).is_none(), "{value_url} is listed twice");
    }
    values
}

/// Every key below a URL with its size and entity tag, page by page if a page has this many keys.
pub async fn list_all(server: &Server, url: &str, limit: Option<usize>) -> Vec<(String, u64, String)> {
    let (mut entries, mut after) = (Vec::new(), String::new());
    let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    loop {
        let page = server.get(&format!("{url}?recursive&format=json{limit}{after}")).await;
        assert_eq!(page.status, StatusCode::OK, "{url}: {:?}", page.body);
        let page = page.json();
        for entry in page["keys"].as_array().unwrap() {
            let text = |member: &str| entry[member].as_str().unwrap().to_owned();
            entries.push((text("key"), entry["size"].as_u64().unwrap(), text("etag")));
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", encode(next)),
            None => break,
        }
    }
    assert!(entries.is_sorted_by(|one, other| one.0 < other.0), "{url}: not in the order of the keys");
    entries
}

/// A store in memory of all that is below a URL.
pub async fn copy(server: &Server, url: &str) -> SharedStore {
    let store = memory();
    for (key, value) in read_all(server, url).await {
        put(&store, &key, value).await;
    }
    store
}

/// The URL of the mount that a URL is below: `/word/mount`, or with a recipe behind it.
pub fn base(url: &str) -> String {
    let segments: Vec<&str> = url.split('/').collect();
    let count = match segments[..] {
        [_, "rechunk", _, _, _, third, ..] if third.starts_with("dtype=") => 6,
        [_, "rechunk", ..] => 5,
        [_, "pyramid", _, _, _, _, fourth, ..] if fourth.starts_with("dtype=") => 7,
        [_, "pyramid", ..] => 6,
        _ => 3,
    };
    segments[..count].join("/")
}

pub fn encode(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}
