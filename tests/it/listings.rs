//! Every kind of listing is complete, and each name in it links to its value.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use zarrd::services::Mount;
use zarrd::store::{SharedStore, StoreOptions, open};

use crate::support::hierarchy::memory;
use crate::support::s3::{Kind, TestS3};
use crate::support::server::{Server, cpu, put};

/// Names that URLs, HTML, XML or file systems treat in ways of their own.
fn odd_names() -> Vec<String> {
    let names = [
        "a b",
        " a",
        "%",
        "%41",
        "%2F",
        "a#b",
        "a?b",
        "a&b",
        "a&amp;b",
        "'",
        "\"",
        "<x>",
        "]]>",
        "a+b",
        "a;b=c",
        "a:b",
        "\\",
        "~",
        "-._~",
        "...",
        ".hidden",
        "@",
        "[x]",
        "{x}",
        "|",
        "^",
        "`",
        "\u{e9}",
        "e\u{301}",
        "\u{65e5}\u{672c}",
        "\u{1f600}",
        "\u{202e}x",
        "\u{2028}",
        "\u{fffd}",
        "index.html",
        "c",
        "0",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).to_vec();
    names.push("n".repeat(255));
    names
}

/// A store in memory and one of files, with the same keys, each of which has its own name as its value.
async fn stores(keys: &[String]) -> (tempfile::TempDir, Vec<(Server, bool)>) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { writable: true, ..StoreOptions::default() };
    let files: SharedStore = open(folder.path().to_str().unwrap(), &options, &cpu()).unwrap();
    let mut servers = Vec::new();
    for store in [memory(), files] {
        for key in keys {
            put(&store, key, key.clone()).await;
        }
        let mount = Mount { hosts: vec!["data.example".to_owned()], ..Mount::read_only("m", store) };
        let server = Server::build(mount).finish();
        servers.extend([(server.clone(), false), (server, true)]);
    }
    (folder, servers)
}

/// A server, and whether it is asked at the root path of a host or below the mount's name.
struct Lister<'a> {
    server: &'a Server,
    rooted: bool,
}

impl Lister<'_> {
    fn base(&self) -> &'static str {
        if self.rooted { "/" } else { "/store/m/" }
    }

    async fn text(&self, method: &str, path: &str, depth: &str) -> (StatusCode, String) {
        let host = if self.rooted { "data.example" } else { "else.example" };
        let request = Request::builder().method(Method::from_bytes(method.as_bytes()).unwrap()).uri(path);
        let request = request.header("host", host).header("depth", depth);
        let answer = self.server.send(request.body(Body::empty()).unwrap()).await;
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    }

    /// Fails unless the value at a path is the key that the path is taken for.
    async fn leads_to(&self, path: &str, key: &str) {
        assert_eq!(self.text("GET", path, "").await, (StatusCode::OK, key.to_owned()), "{path}");
    }

    /// The keys and prefixes that a prefix's listing shows, by shape; each is fetched.
    async fn listed(&self, prefix: &str, recursive: bool) -> [Vec<String>; 3] {
        let at = format!("{}{prefix}", self.base());
        let query = if recursive { "?recursive" } else { "" };
        let (_, html) = self.text("GET", &format!("{at}{query}"), "").await;
        assert!(html.contains(&format!("<title>Index of {at}</title>")), "{html}");
        let links: Vec<&str> =
            html.lines().filter_map(|line| line.strip_prefix("<a href=\"")?.split('"').next()).collect();
        let mut from_html = Vec::new();
        for link in links {
            if link == "../" {
                let above = at.trim_end_matches('/').rsplit_once('/').unwrap().0;
                assert_eq!(self.text("GET", &format!("{above}/"), "").await.0, StatusCode::OK, "above {at}");
            } else {
                from_html.push(self.entry(&format!("{at}{link}")).await);
            }
        }
        let (_, xml) = self.text("PROPFIND", &at, if recursive { "infinity" } else { "1" }).await;
        let mut from_xml = Vec::new();
        for href in xml.split("<D:href>").skip(1).map(|text| text.split_once('<').unwrap().0) {
            // The prefix itself comes first; prefixes in a recursive listing have keys of their own.
            if href != at && !(recursive && href.ends_with('/')) {
                from_xml.push(self.entry(href).await);
            }
        }
        let mut from_json = Vec::new();
        let (mut page, limit) = (String::new(), 7);
        loop {
            let url =
                format!("{at}?format=json&limit={limit}{}{page}", if recursive { "&recursive" } else { "" });
            let listing: serde_json::Value =
                serde_json::from_str(&self.text("GET", &url, "").await.1).unwrap();
            let names = |member: &str| listing[member].as_array().unwrap().clone();
            from_json.extend(names("keys").iter().map(|key| key["key"].as_str().unwrap().to_owned()));
            from_json.extend(names("prefixes").iter().map(|prefix| prefix.as_str().unwrap().to_owned()));
            match listing["next"].as_str() {
                Some(next) => page = format!("&after={}", encoded(next)),
                None => break,
            }
        }
        let mut shapes = [from_html, from_json, from_xml];
        for names in &mut shapes {
            names.sort_unstable();
        }
        shapes
    }

    /// The key or prefix that the path of a listing's entry names, which must be there.
    async fn entry(&self, path: &str) -> String {
        let text = path.strip_prefix(self.base()).unwrap_or_else(|| panic!("{path}"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte);
        assert!(text.bytes().all(plain), "{path}");
        let text = percent_decode_str(text).decode_utf8().unwrap().into_owned();
        if !text.ends_with('/') {
            self.leads_to(path, &text).await;
        }
        text
    }
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The expected entries of `list_dir`, by its definition.
fn directly_under(keys: &[String], prefix: &str) -> Vec<String> {
    let below = keys.iter().filter_map(|key| key.strip_prefix(prefix));
    let mut names: Vec<String> = below
        .map(|rest| rest.split_once('/').map_or(rest.to_owned(), |(name, _)| format!("{name}/")))
        .map(|name| format!("{prefix}{name}"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[tokio::test]
async fn every_kind_of_listing_shows_odd_names_with_working_links() {
    let mut keys: Vec<String> = odd_names();
    keys.extend(odd_names().iter().map(|name| format!("below/{name}")));
    keys.extend(odd_names().iter().map(|name| format!("in/{name}/x")));
    let (_folder, servers) = stores(&keys).await;
    for (server, rooted) in &servers {
        let lister = Lister { server, rooted: *rooted };
        for prefix in ["", "below/", "in/"] {
            for listed in lister.listed(prefix, false).await {
                assert_eq!(listed, directly_under(&keys, prefix), "{prefix}");
            }
        }
        let mut all = keys.clone();
        all.sort_unstable();
        for listed in lister.listed("", true).await {
            assert_eq!(listed, all);
        }
        // Listed under their own names.
        for name in odd_names() {
            let (status, xml) =
                lister.text("PROPFIND", &format!("{}in/{}", lister.base(), encoded(&name)), "1").await;
            assert_eq!((status.as_u16(), xml.matches("<D:response>").count()), (207, 2), "{name}");
        }
    }
}

#[tokio::test]
async fn a_prefix_is_not_a_string_prefix_and_stray_keys_are_listed() {
    let keys = [
        "a/zarr.json",
        "a/c/0",
        "a/c/junk.tmp",
        "a/.DS_Store",
        "ab",
        "ab.json",
        "a.b/x",
        "a-/x",
        "a0",
        "b/c",
    ];
    let keys = keys.map(str::to_owned);
    let (_folder, servers) = stores(&keys).await;
    for (server, rooted) in &servers {
        let lister = Lister { server, rooted: *rooted };
        for prefix in ["", "a/", "a/c/", "a.b/", "b/"] {
            for listed in lister.listed(prefix, false).await {
                assert_eq!(listed, directly_under(&keys, prefix), "{prefix}");
            }
            let mut below: Vec<String> = keys.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
            below.sort_unstable();
            for listed in lister.listed(prefix, true).await {
                assert_eq!(listed, below, "{prefix}");
            }
        }
        for missing in ["ab/", "a/c/0/", "a0/", "A/"] {
            for (method, path) in [("GET", missing), ("PROPFIND", missing)] {
                let (status, _) = lister.text(method, &format!("{}{path}", lister.base()), "1").await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_key_and_a_prefix_of_one_name_are_both_listed() {
    let store = memory();
    let keys = ["both", "both/0", "z/both", "z/both/0"].map(str::to_owned);
    for key in &keys {
        put(&store, key, key.clone()).await;
    }
    let server = Server::of(store);
    let lister = Lister { server: &server, rooted: false };
    for prefix in ["", "both/", "z/", "z/both/"] {
        for listed in lister.listed(prefix, false).await {
            assert_eq!(listed, directly_under(&keys, prefix), "{prefix}");
        }
    }
    lister.leads_to("/store/m/both", "both").await;
    let (_, xml) = lister.text("PROPFIND", "/store/m/both", "infinity").await;
    assert_eq!(xml.matches("<D:href>/store/m/both</D:href>").count(), 1);
    assert_eq!(xml.matches("<D:response>").count(), 1, "the path without a slash is the key");
    let (_, xml) = lister.text("PROPFIND", "/store/m/both/", "infinity").await;
    assert_eq!(xml.matches("<D:response>").count(), 2);
}

#[tokio::test]
async fn an_empty_root_exists_and_is_empty() {
    let (_folder, servers) = stores(&[]).await;
    for (server, rooted) in &servers {
        let lister = Lister { server, rooted: *rooted };
        for recursive in [false, true] {
            for listed in lister.listed("", recursive).await {
                assert_eq!(listed, Vec::<String>::new());
            }
        }
        let (status, xml) = lister.text("PROPFIND", lister.base(), "0").await;
        assert_eq!((status.as_u16(), xml.matches("<D:response>").count()), (207, 1));
    }
}

#[tokio::test]
async fn ten_thousand_keys_in_one_prefix_are_all_listed() {
    let store = memory();
    for number in 0..10_000 {
        put(&store, &format!("a/c/{number}"), "x").await;
    }
    let server = Server::of(store);
    let lister = Lister { server: &server, rooted: false };
    let count = async |method: &str, path: &str, depth: &str, mark: &str| {
        let (status, text) = lister.text(method, path, depth).await;
        assert!(status.is_success(), "{method} {path}: {status}");
        text.matches(mark).count()
    };
    assert_eq!(count("GET", "/store/m/a/c/", "", "<a href=").await, 10_001);
    assert_eq!(count("GET", "/store/m/?recursive", "", "<a href=").await, 10_000);
    assert_eq!(count("PROPFIND", "/store/m/a/c", "1", "<D:response>").await, 10_001);
    assert_eq!(count("PROPFIND", "/store/m", "infinity", "<D:response>").await, 10_003);
    let (mut after, mut seen) = (String::new(), 0);
    loop {
        let url = format!("/store/m/a/c/?format=json{after}");
        let page: serde_json::Value = serde_json::from_str(&lister.text("GET", &url, "").await.1).unwrap();
        seen += page["keys"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", encoded(next)),
            None => break,
        }
    }
    assert_eq!(seen, 10_000);
}

/// What is listed by JSON directly under a prefix, in pages of this length.
async fn in_pages(server: &Server, at: &str, limit: usize) -> Vec<String> {
    let lister = Lister { server, rooted: false };
    let (mut after, mut seen) = (String::new(), Vec::new());
    loop {
        let url = format!("{at}?format=json&limit={limit}{after}");
        let (status, text) = lister.text("GET", &url, "").await;
        assert_eq!(status, StatusCode::OK, "{url}: {text}");
        let page: serde_json::Value = serde_json::from_str(&text).unwrap();
        let keys = page["keys"].as_array().unwrap().iter().map(|key| key["key"].as_str().unwrap().to_owned());
        let prefixes =
            page["prefixes"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        let mut page_of_both: Vec<String> = keys.chain(prefixes).collect();
        assert!(page_of_both.len() <= limit);
        page_of_both.sort_unstable();
        seen.extend(page_of_both);
        match page["next"].as_str() {
            Some(next) => after = format!("&after={}", encoded(next)),
            None => return seen,
        }
    }
}

#[tokio::test]
async fn pages_of_a_bucket_follow_the_backends_pages_and_skip_directory_markers() {
    let s3 = TestS3::start().await;
    s3.page_keys(10);
    let mut expected = Vec::new();
    for number in 0..40 {
        s3.insert(&format!("d/{number:02}"), "x");
        s3.insert(&format!("d/{number:02}+/y"), "x");
        expected.extend([format!("d/{number:02}"), format!("d/{number:02}+/")]);
    }
    // An empty object with the name of a prefix that comes on a later page; and one that is a key.
    s3.insert("d/7", "");
    (0..15).for_each(|number| drop(s3.insert(&format!("d/7-{number:02}"), "x")));
    s3.insert("d/7/z", "x");
    s3.insert("d/8", "");
    expected.extend((0..15).map(|number| format!("d/7-{number:02}")));
    expected.extend(["d/7/".to_owned(), "d/8".to_owned()]);
    expected.sort_unstable();
    let server = Server::of(s3.store());
    for limit in [1, 7, 1000] {
        assert_eq!(in_pages(&server, "/store/m/d/", limit).await, expected, "{limit}");
    }
    let before = s3.requests(Kind::List);
    let lister = Lister { server: &server, rooted: false };
    for url in [
        "/store/m/d/?format=json&limit=5&after=d/30",
        "/s3/m?list-type=2&prefix=d/&delimiter=/&max-keys=5&start-after=d/30",
        "/s3/m?list-type=2&prefix=d/30&delimiter=/&max-keys=5",
    ] {
        assert_eq!(lister.text("GET", url, "").await.0, StatusCode::OK);
    }
    assert_eq!(s3.requests(Kind::List) - before, 3, "one for each");
}
