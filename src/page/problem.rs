//! An error for people: what is wrong, and where to go on.

use maud::html;
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

impl ProblemPage<'_> {
    /// The page as HTML.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let title = format!("{} {}", self.status, self.title);
        let body = html! {
            main #content.problem {
                h1 { (title) }
                @if let Some(detail) = self.detail { p { bdi { (cut(detail, 1000)) } } }
                @if self.asks_for_token && let Some(session) = &site.session {
                    (super::sign_in::form(session, None))
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
