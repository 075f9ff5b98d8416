//! Signing in on pages: the browser returns to the page that asked for a token, and to no other server.

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{ask, grant, known, server, token};
use crate::support::server::{Answer, Server};

const SESSION: &str = "/view/-/session";
const HTML: (&str, &str) = ("accept", "text/html");

fn options() -> Value {
    json!({ "query_tokens": true, "tokens": { "a": known("a", json!([grant("m", "", &["read", "list"])])) } })
}

/// The page that the form of a page returns to.
fn next(html: &str) -> String {
    let value = html.split("name=\"next\" value=\"").nth(1).unwrap_or_default();
    value.split('"').next().unwrap().replace("&amp;", "&")
}

async fn page(server: &Server, url: &str, status: u16) -> String {
    let answer = ask(server, "GET", url, &[HTML], "").await;
    assert_eq!(answer.status, status, "{url}");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

async fn sign_in(server: &Server, token: &str, next: &str) -> Answer {
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("token", token)
        .append_pair("next", next)
        .finish();
    let headers = [HTML, ("content-type", "application/x-www-form-urlencoded")];
    ask(server, "POST", SESSION, &headers, &form).await
}

#[tokio::test]
async fn after_signing_in_the_browser_is_at_the_page_that_asked_for_it() {
    let (server, _) = server(options(), &[]).await;
    for (asked, back) in [
        ("/view/m/arr", "/view/m/arr"),
        ("/view/m/arr?slice=0:2&tab=table", "/view/m/arr?slice=0:2&tab=table"),
        ("/view/m/", "/view/m/"),
        // A credential that was refused would be refused again.
        ("/view/m/arr?tab=use&token=zs_a_wrong", "/view/m/arr?tab=use"),
        ("/view/m/arr?expires=1&key=k&signature=ab&tab=use", "/view/m/arr?tab=use"),
    ] {
        let html = page(&server, asked, 401).await;
        assert_eq!(next(&html), back, "{asked}: {html}");
        let answer = sign_in(&server, &token("a"), &next(&html)).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, back), "{asked}");
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        let answer = ask(&server, "GET", back, &[HTML, ("cookie", &cookie)], "").await;
        assert_eq!(answer.status, 200, "{back}");
    }
}

#[tokio::test]
async fn the_page_to_return_to_outlives_the_link_to_sign_in_and_a_wrong_token() {
    let (server, _) =
        server(options(), &[("m", &[zarrd::auth::Scope::Read, zarrd::auth::Scope::List])]).await;
    let html = page(&server, "/view/m/arr?slice=0:2&tab=table", 200).await;
    let link =
        html.split("href=\"").find_map(|rest| rest.split('"').next().filter(|to| to.starts_with(SESSION)));
    let form = page(&server, &link.unwrap().replace("&amp;", "&"), 200).await;
    assert_eq!(next(&form), "/view/m/arr?slice=0:2&tab=table");
    let refused = sign_in(&server, "wrong", &next(&form)).await;
    assert_eq!(refused.status, 200);
    let html = String::from_utf8(refused.body.to_vec()).unwrap();
    assert!(html.contains("not valid") && next(&html) == next(&form), "{html}");
}

#[tokio::test]
async fn signing_in_leads_to_no_other_server() {
    let (server, _) = server(options(), &[]).await;
    for next in [
        "",
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example/",
        "/\t/evil.example/",
        "/\r\nx: y",
        "javascript:alert(1)",
        "evil.example",
        "/view/-/session",
    ] {
        let answer = sign_in(&server, &token("a"), next).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"), "{next:?}");
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let html = page(&server, &format!("{SESSION}?{query}"), 200).await;
        assert!(!html.contains("name=\"next\"") && !html.contains("evil"), "{next:?}: {html}");
    }
}
