//! The points of a store in Zarr Vector Format, drawn by a script from the routes of vectors.

use maud::{Markup, html};

use super::state::{below, join};

/// Most points that a page draws at once.
const MOST_POINTS: u32 = 50_000;

/// The drawing of a store, given the paths of its description and of its page.
pub(super) fn section(store: &str, view: &str) -> Markup {
    let vertices =
        |format: &str| join(&below(store, "vertices"), [("format", format), ("limit", "1000")].into_iter());
    html! {
        section.viewer.points data-vectors=(store) data-page=(view) data-most=(MOST_POINTS) aria-label="Points" {
            div.main {
                figure.stage #stage { noscript { p.muted { "Points are drawn by a script." } } }
                p.cost #cost role="status" {}
                p.muted {
                    "The points as data: " a href=(store) { "summary" } ", "
                    a href=(vertices("json")) { "the first thousand (JSON)" } ", "
                    a href=(vertices("arrow")) { "the same (Arrow)" }
                }
            }
            form.controls.js-only #controls aria-label="Points" {}
        }
    }
}
