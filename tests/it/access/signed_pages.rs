//! Pages that a signed URL opens: what they link to, request and send has the signature, within the signed prefix.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};
use url::form_urlencoded;
use zarrd::services::Mount;

use super::forged::{options, signed};
use super::{NOW, access, ask, filled};
use crate::labels::{array, doubles, integers};
use crate::support::server::{Answer, Server, put};

/// What browsers send.
const BROWSER: [(&str, &str); 1] = [("accept", "text/html,*/*;q=0.8")];

/// Most pages that are opened one after the other.
const MOST_PAGES: usize = 40;

/// A server whose mount has a group with a blank in its name, with the array `v` and its coordinates.
async fn deep() -> Server {
    let store = filled().await;
    put(&store, "g/deep x/zarr.json", json!({ "zarr_format": 3, "node_type": "group" }).to_string()).await;
    array(&store, "g/deep x/v", &[4, 3], "int32", &["lat", "lon"], json!({}), integers(0..12)).await;
    array(&store, "g/deep x/lat", &[4], "float64", &["lat"], json!({}), doubles(&[60.0, 50.0, 40.0, 30.0]))
        .await;
    array(&store, "g/deep x/lon", &[3], "float64", &["lon"], json!({}), doubles(&[0.0, 1.0, 2.0])).await;
    let server = Server::build(Mount::read_only("m", store)).finish();
    server.set_access(access(options(), &[], &std::sync::Arc::default()));
    server
}

async fn open(server: &Server, url: &str) -> Answer {
    ask(server, "GET", url, &BROWSER, "").await
}

/// A page, which has to be there.
async fn page(server: &Server, url: &str) -> String {
    let answer = open(server, url).await;
    assert_eq!(answer.status, 200, "{url}: {:?}", answer.body);
    String::from_utf8(answer.body.to_vec()).unwrap()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The values of an attribute.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    html.split(&start).skip(1).map(|rest| unescaped(rest.split('"').next().unwrap())).collect()
}

/// The URL that the form with this beginning requests, as browsers write it.
fn sent(html: &str, form: &str) -> String {
    let form = html.split(form).nth(1).unwrap().split("</form>").next().unwrap();
    let form = format!(" {form}");
    let mut query = form_urlencoded::Serializer::new(String::new());
    for field in form.split("<input type=\"hidden\"").skip(1) {
        query.append_pair(&values(field, "name")[0], &values(field, "value")[0]);
    }
    format!("{}?{}", values(&form, "action")[0], query.finish())
}

/// The query of a URL that is signed for the group.
fn signature() -> String {
    signed("k", "m", "g/deep x/", NOW + 10).split_once('?').unwrap().1.to_owned()
}

#[tokio::test]
async fn every_link_of_a_page_opened_by_a_signed_url_works() {
    let server = deep().await;
    let listing = page(&server, &signed("k", "m", "g/deep x/", NOW + 10)).await;
    let first = sent(&listing, "<form");
    assert!(first.starts_with("/view/m/g/deep%20x?") && first.contains("below=g%2Fdeep+x%2F"), "{first}");
    let (mut pages, mut seen, mut routes) = (VecDeque::from([first]), BTreeSet::new(), BTreeSet::new());
    // Pages of the same arrays with other slices have the same links.
    for _ in 0..MOST_PAGES {
        let Some(url) = pages.pop_front() else { break };
        let html = page(&server, &url).await;
        assert!(!html.contains("Unknown in this URL") && !html.contains("Sign out"), "{url}: {html}");
        let links = ["href", "src", "data-src", "data-node"].into_iter().flat_map(|name| values(&html, name));
        for link in links.filter(|link| link.starts_with('/') && !link.starts_with("/docs")) {
            if !seen.insert(link.clone()) {
                continue;
            }
            let answer = open(&server, &link).await;
            assert_eq!(answer.status, 200, "{link} on {url}: {:?}", answer.body);
            routes.insert(link.split('/').take(3).collect::<Vec<_>>().join("/"));
            if link.starts_with("/view/m/") {
                pages.push_back(link);
            }
        }
    }
    for route in ["/view/m", "/store/m", "/v1/nodes", "/v1/data", "/v1/image", "/v1/stats"] {
        assert!(routes.contains(route), "{route}: {routes:?}");
    }
    assert!(!seen.iter().any(|link| link == "/view/m/" || link == "/view/m/g"), "{seen:?}");
}

#[tokio::test]
async fn scripts_and_forms_of_a_page_opened_by_a_signed_url_have_the_signature() {
    let (server, signature) = (deep().await, signature());
    let html = page(&server, &format!("/view/m/g/deep%20x/v?{signature}&colormap=magma")).await;
    let config: Value = serde_json::from_str(&values(&html, "data-config")[0]).unwrap();
    let coordinates = config["coordinates"].as_array().unwrap();
    let mut requested: Vec<&Value> = coordinates.iter().map(|one| &one["data"]).collect();
    assert_eq!(requested.len(), 2, "{config}");
    requested.extend(["view", "data", "picture", "stats", "legend"].map(|name| &config[name]));
    for url in requested.into_iter().map(|url| url.as_str().unwrap()) {
        assert!(url.ends_with(&format!("?{signature}")), "{url}");
        assert_eq!(open(&server, url).await.status, 200, "{url}");
    }
    let sent = sent(&html, "<form class=\"controls\"");
    assert!(sent.contains("signature=") && sent.contains("slice="), "{sent}");
    page(&server, &sent).await;
}

#[tokio::test]
async fn lines_for_programs_have_the_signature_where_the_program_sends_it() {
    let (server, signature) = (deep().await, signature());
    let html = unescaped(&page(&server, &format!("/view/m/g/deep%20x/v?{signature}&tab=use")).await);
    let lines =
        |word: &str| html.lines().filter(|line| line.contains(word)).map(str::to_owned).collect::<Vec<_>>();
    for word in ["urlopen(", "curl --output", "read.csv(", "await fetch(", "zarr.FetchStore("] {
        let found = lines(word);
        assert!(!found.is_empty() && found.iter().all(|line| line.contains(&signature)), "{word}: {found:?}");
    }
    for word in ["zarr.open_array(", "xarray.open_zarr(", "zopen(", "/vsicurl/", "loadOmeZarr("] {
        let found = lines(word);
        assert!(!found.is_empty(), "{word}: {html}");
        for line in found {
            let after = line.split(word).nth(1).unwrap().split([')', '\'']).next().unwrap().to_owned();
            assert!(!after.contains("signature="), "{line}");
        }
    }
    // The page says what such a line needs.
    assert!(html.contains("It needs a token in the header"), "{html}");
    let group = page(&server, &format!("/view/m/g/deep%20x?{signature}")).await;
    assert!(group.contains("It needs a token in the header"), "{group}");
}

#[tokio::test]
async fn redirects_and_errors_of_a_page_opened_by_a_signed_url_keep_the_signature() {
    let (server, signature) = (deep().await, signature());
    let of_label = |label: u8| format!("/view/m/g/deep%20x/v?{signature}&sel.lat={label}&tab=table");
    let answer = open(&server, &of_label(50)).await;
    assert_eq!(answer.status, 307, "{:?}", answer.body);
    let location = answer.header("location");
    assert!(location.contains(&signature) && location.contains("tab=table"), "{location}");
    page(&server, location).await;
    let answer = open(&server, &of_label(45)).await;
    assert_eq!(answer.status, 400);
    let html = String::from_utf8(answer.body.to_vec()).unwrap();
    let link = values(&html, "href").into_iter().find(|link| link.starts_with("/view/m/g/deep%20x/v"));
    page(&server, &link.unwrap()).await;
}

#[tokio::test]
async fn the_colour_below_the_range_is_no_prefix_of_a_signature() {
    let (server, signature) = (deep().await, signature());
    let words = "range=5,6&below=ff0000&above=00ff00";
    let picture = format!("/v1/image/m/g/deep%20x/v?{words}&{signature}");
    let html = page(&server, &format!("/view/m/g/deep%20x/v?{signature}&{words}")).await;
    let links: Vec<String> = values(&html, "src");
    assert!(links.iter().any(|link| link.contains("below=ff0000") && link.contains(&signature)), "{links:?}");
    for url in links.into_iter().filter(|link| link.starts_with("/v1/")).chain([picture]) {
        assert_eq!(open(&server, &url).await.status, 200, "{url}");
    }
}
