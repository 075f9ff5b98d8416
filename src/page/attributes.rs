//! Attributes as a collapsible tree. They are hostile: every value is text, and size and depth are bounded.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::facts::cut;

/// Deepest level that is shown.
const MOST_DEPTH: usize = 16;
/// Most values of a tree.
const MOST_VALUES: usize = 1500;
/// Most members of one list of a tree.
const MOST_MEMBERS: usize = 300;
/// Longest text of a value, in characters.
const MOST_TEXT: usize = 2000;
/// Longest name, in characters.
const MOST_NAME: usize = 200;
/// Values of a list that are shown in one line.
const MOST_INLINE: usize = 16;

/// The tree of an object.
pub(super) fn tree(members: &Map<String, Value>) -> Markup {
    let mut left = MOST_VALUES;
    html! {
        @if members.is_empty() {
            p.muted { "No attributes." }
        } @else {
            div.attributes { (object(members, 0, &mut left)) }
            @if left == 0 {
                p.muted { "The rest is in the metadata document." }
            }
        }
    }
}

fn object(members: &Map<String, Value>, depth: usize, left: &mut usize) -> Markup {
    let shown = members.iter().take(MOST_MEMBERS);
    html! {
        dl {
            @for (name, value) in shown {
                @if *left > 0 {
                    (entry(&cut(name, MOST_NAME), value, depth, left))
                }
            }
            @if members.len() > MOST_MEMBERS { (more(members.len() - MOST_MEMBERS)) }
        }
    }
}

fn list(items: &[Value], depth: usize, left: &mut usize) -> Markup {
    html! {
        dl {
            @for (at, value) in items.iter().take(MOST_MEMBERS).enumerate() {
                @if *left > 0 {
                    (entry(&at.to_string(), value, depth, left))
                }
            }
            @if items.len() > MOST_MEMBERS { (more(items.len() - MOST_MEMBERS)) }
        }
    }
}

fn more(count: usize) -> Markup {
    html! { dt { "…" } dd.muted { (count) " more" } }
}

fn entry(name: &str, value: &Value, depth: usize, left: &mut usize) -> Markup {
    *left -= 1;
    match value {
        Value::Object(members) if !members.is_empty() => {
            let count = members.len();
            nested(name, &format!("{count} {}", if count == 1 { "member" } else { "members" }), depth, || {
                object(members, depth + 1, left)
            })
        }
        Value::Array(items) if !is_short(items) => {
            let count = items.len();
            nested(name, &format!("{count} {}", if count == 1 { "item" } else { "items" }), depth, || {
                list(items, depth + 1, left)
            })
        }
        value => html! { dt { bdi { (name) } } dd { (scalar(value)) } },
    }
}

fn nested(name: &str, summary: &str, depth: usize, inner: impl FnOnce() -> Markup) -> Markup {
    html! {
        dt { bdi { (name) } }
        @if depth >= MOST_DEPTH {
            dd.muted { (summary) ", nested too deeply to be shown" }
        } @else {
            dd.nested {
                details open[depth < 1] {
                    summary.muted { (summary) }
                    (inner())
                }
            }
        }
    }
}

/// Whether a list fits on one line.
fn is_short(items: &[Value]) -> bool {
    items.len() <= MOST_INLINE && items.iter().all(|item| !item.is_object() && !item.is_array())
}

fn scalar(value: &Value) -> Markup {
    match value {
        Value::String(text) => html! { bdi.text { (cut(text, MOST_TEXT)) } },
        Value::Array(items) => html! {
            code { "[" (items.iter().map(|item| cut(&item.to_string(), MOST_NAME)).collect::<Vec<_>>().join(", ")) "]" }
        },
        other => html! { code { (cut(&other.to_string(), MOST_TEXT)) } },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: &Value) -> String {
        tree(value.as_object().unwrap()).into_string()
    }

    #[test]
    fn hostile_attributes_are_text() {
        let html = shown(&json!({
            "<script>alert(1)</script>": "<img src=x onerror=alert(1)>",
            "link": "javascript:alert(1)",
            "\"><svg onload=alert(1)>": ["</bdi></dd><script>"],
        }));
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("<svg"), "{html}");
        assert!(!html.contains("href"), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)"), "{html}");
    }

    #[test]
    fn long_deep_and_many_values_are_cut() {
        let html = shown(&json!({ "long": "x".repeat(1 << 20) }));
        assert!(html.len() < 10_000, "{}", html.len());
        let mut deep = json!("bottom");
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        let html = shown(&json!({ "deep": deep }));
        assert!(html.contains("nested too deeply") && !html.contains("bottom"));
        let many: Map<String, Value> =
            (0..10_000).map(|at| (at.to_string(), json!({ "a": { "b": at } }))).collect();
        let html = shown(&json!({ "many": many }));
        assert!(html.len() < 400_000, "{}", html.len());
        assert!(html.contains("9700 more"), "{}", html.len());
    }
}
