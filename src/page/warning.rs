//! [`PageWarning`]: what makes a node hard to read or view, on its page; and that the storage does not answer.

use maud::{Markup, html};

use super::facts::cut;

/// What makes a node hard to read or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageWarning {
    /// What is wrong, as a sentence without a stop.
    pub detail: String,
    /// What helps: what it is, and its path on this server.
    pub way_out: Option<(&'static str, String)>,
}

/// The warnings about a layout.
pub(super) fn layout_warnings(warnings: &[PageWarning]) -> Markup {
    html! {
        @for warning in warnings {
            p.note {
                bdi { (capitalised(&cut(&warning.detail, 400))) } "."
                @if let Some((what, href)) = &warning.way_out { " " a href=(href) { (what) } "." }
            }
        }
    }
}

/// That the storage does not answer.
pub(super) fn silence(text: Option<&str>) -> Markup {
    html! { @if let Some(text) = text { p.warn role="status" { (text) } } }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", characters.as_str())
}
