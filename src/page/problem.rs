//! An error for people: what is wrong, and where to go on.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::attributes;
use super::facts::cut;
use super::layout::{Head, Site, page};

/// An error.
#[derive(Clone, Debug)]
pub struct ProblemPage<'a> {
    /// The status code.
    pub status: u16,
    /// The reason phrase of the status.
    pub title: &'a str,
    /// The stable code.
    pub code: &'a str,
    /// What is wrong and what to do.
    pub detail: Option<&'a str>,
    /// The id of the request.
    pub request_id: &'a str,
    /// Further members of the problem document.
    pub extensions: &'a Map<String, Value>,
    /// Where to go on, as path and text.
    pub ways: Vec<(String, String)>,
    /// Whether signing in may help.
    pub asks_for_token: bool,
}

/// A detail as a sentence, with what stands between backquotes as code.
fn sentence(detail: &str) -> Markup {
    let mut characters = detail.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    let text = format!("{first}{}", characters.as_str());
    let is_open = text.ends_with(|end: char| end.is_alphanumeric() || matches!(end, '`' | ')'));
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
        @if is_open { "." }
    }
}

impl ProblemPage<'_> {
    /// The page as HTML.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let title = format!("{} {}", self.status, self.title);
        let body = html! {
            main #content.problem {
                h1 { (title) }
                @if self.asks_for_token {
                    p { "Sign in with a token to see this. Programs send it as " code { "Authorization: Bearer …" } "." }
                } @else if let Some(detail) = self.detail {
                    p { bdi { (sentence(&cut(detail, 1000))) } }
                }
                @if self.asks_for_token && let Some(session) = &site.session {
                    (super::sign_in::form(session, &site.here, None))
                }
                @if !self.ways.is_empty() {
                    ul.ways {
                        @for (href, text) in &self.ways { li { a href=(href) { bdi { (cut(text, 200)) } } } }
                    }
                }
                p { a href=(site.home) { "All data on this server" } }
                @if !self.extensions.is_empty() {
                    details { summary { "Details" } (attributes::tree(self.extensions)) }
                }
                p.muted { code { (self.code) } " · request " code { (cut(self.request_id, 130)) } }
            }
        };
        page(site, &Head { title: &title, ..Head::default() }, &body)
    }
}
