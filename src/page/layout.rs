//! The frame of every page: head, header with breadcrumbs, footer.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets;
use super::facts::name;
use super::state::join;

/// What all pages of a request share.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The path of the page of all mounts.
    pub home: String,
    /// The path of the script.
    pub script: String,
    /// The path of the icon.
    pub icon: String,
    /// The path of the documentation of the interface.
    pub docs: String,
    /// The path for signing in and out; `None` if the server knows no credentials.
    pub session: Option<String>,
    /// The page to return to after signing in: path and query on this server, without its base path. Empty for the first page.
    pub here: String,
    /// Whether the caller is signed in.
    pub is_signed_in: bool,
    /// Scheme and host as the client sees them, such as `http://localhost:8000`.
    pub origin: String,
}

/// A step of the path to a page.
#[derive(Clone, Debug)]
pub struct Crumb {
    /// The name of the node.
    pub name: String,
    /// The path of its page.
    pub href: String,
}

/// What a page says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Head<'a> {
    /// Its title.
    pub(super) title: &'a str,
    /// One sentence, for programs that show links.
    pub(super) description: Option<String>,
    /// The path of its picture, for the same programs.
    pub(super) picture: Option<String>,
    /// The pages above it.
    pub(super) crumbs: &'a [Crumb],
}

/// The path of the page for signing in that returns to this one.
pub(super) fn sign_in(site: &Site, session: &str) -> String {
    let here = Some(site.here.as_str()).filter(|here| !here.is_empty());
    join(session, here.map(|here| ("next", here)).into_iter())
}

/// A whole page.
pub(super) fn page(site: &Site, head: &Head<'_>, body: &Markup) -> String {
    let Head { title, description, picture, crumbs } = head;
    // Programs that show links take absolute URLs alone.
    let picture = picture.as_ref().filter(|_| !site.origin.is_empty());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                meta property="og:title" content=(title);
                meta property="og:site_name" content="zarrd";
                meta property="og:type" content="website";
                @if let Some(text) = description {
                    meta name="description" content=(text);
                    meta property="og:description" content=(text);
                }
                @if let Some(picture) = picture {
                    meta property="og:image" content=(format!("{}{picture}", site.origin));
                    meta property="og:image:type" content="image/png";
                }
                link rel="icon" href=(site.icon) type="image/svg+xml";
                // In the page: a browser that waits for a file lays the page out without it first, and again when it comes.
                style { (PreEscaped(assets::style())) }
                script type="module" src=(site.script) {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    nav.crumbs aria-label="Breadcrumbs" {
                        ol {
                            li { a.brand href=(site.home) { "zarrd" } }
                            @for (at, crumb) in crumbs.iter().enumerate() {
                                li {
                                    a href=(crumb.href) aria-current=[(at + 1 == crumbs.len()).then_some("page")] {
                                        bdi { (name(&crumb.name)) }
                                    }
                                }
                            }
                        }
                    }
                    div.tools {
                        button.plain.js-only #theme type="button" { "Theme" }
                        a href=(site.docs) { "API" }
                        @if let Some(session) = &site.session {
                            @if site.is_signed_in {
                                form method="post" action=(session) {
                                    button.plain type="submit" name="end" value="1" { "Sign out" }
                                }
                            } @else {
                                a href=(sign_in(site, session)) { "Sign in" }
                            }
                        }
                        button.plain.js-only #help type="button" aria-haspopup="dialog" aria-label="Keyboard shortcuts" { "?" }
                    }
                }
                (body)
                p.visually-hidden #live aria-live="polite" {}
            }
        }
    }
    .into_string()
}
