//! The page for signing in with a token.

use maud::{Markup, html};

use super::layout::{Head, Site, page};

/// The page for signing in.
#[derive(Clone, Copy, Debug)]
pub struct SignInPage {
    /// Whether a token was refused just now.
    pub was_refused: bool,
}

impl SignInPage {
    /// The page as HTML.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let action = site.session.as_deref().unwrap_or_default();
        let complaint = self.was_refused.then_some("This token is not valid here.");
        let body = html! {
            main #content.problem {
                h1 { "Sign in" }
                (form(action, &site.here, complaint))
                p.muted {
                    "The token is kept in a cookie of this browser, for reading only, until you sign out or close the browser. "
                    "It needs HTTPS, or a server on this machine."
                }
            }
        };
        page(site, &Head { title: "Sign in", ..Head::default() }, &body)
    }
}

/// The form with the token, and the page to return to.
pub(super) fn form(action: &str, next: &str, complaint: Option<&str>) -> Markup {
    html! {
        form.sign-in method="post" action=(action) {
            @if !next.is_empty() { input type="hidden" name="next" value=(next); }
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required
                aria-describedby=[complaint.map(|_| "complaint")];
            button type="submit" { "Sign in" }
            @if let Some(complaint) = complaint { p.warn #complaint role="alert" { (complaint) } }
        }
    }
}
