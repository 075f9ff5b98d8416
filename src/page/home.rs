//! The page of all mounts.

use maud::html;

use super::child_row::ChildRow;
use super::facts::name;
use super::layout::{Head, Site, page, sign_in};
use super::thumbnail;

/// A mount, as the page of all mounts shows it.
#[derive(Clone, Debug)]
pub struct MountCard {
    /// Its name.
    pub name: String,
    /// The path of its page.
    pub href: String,
    /// The kind of its backend.
    pub kind: &'static str,
    /// Whether it can be written to.
    pub writable: bool,
    /// Its state and the cause, if its backend fails.
    pub trouble: Option<(&'static str, &'static str)>,
    /// Its title, from the attributes of its root.
    pub title: Option<String>,
    /// The nodes in it, the first ones with pictures; `None` if they are not known.
    pub nodes: Option<Vec<ChildRow>>,
    /// Whether there are more.
    pub has_more: bool,
    /// The path of its listing of stored values.
    pub store: String,
}

/// The page of all mounts.
#[derive(Clone, Debug)]
pub struct HomePage {
    /// The mounts that the caller may see.
    pub mounts: Vec<MountCard>,
    /// The version of the server.
    pub version: &'static str,
}

impl HomePage {
    /// The page as HTML.
    #[must_use]
    pub fn render(&self, site: &Site) -> String {
        let body = html! {
            main #content.home {
                h1 { "Data on this server" }
                @if self.mounts.is_empty() {
                    p {
                        "There is nothing here for you to see."
                        @if let Some(session) = site.session.as_ref().filter(|_| !site.is_signed_in) {
                            " " a href=(sign_in(site, session)) { "Sign in" } " with a token."
                        }
                    }
                }
                ul.cards {
                    @for mount in &self.mounts { (card(mount)) }
                }
                p.muted.foot { "zarrd " (self.version) " · " a href=(site.docs) { "interface" } }
            }
        };
        page(site, &Head { title: "zarrd", ..Head::default() }, &body)
    }
}

fn card(mount: &MountCard) -> maud::Markup {
    html! {
        li.card {
            h2 { a href=(mount.href) { bdi { (name(&mount.name)) } } }
            @if let Some(title) = &mount.title { p { bdi { (name(title)) } } }
            p.tags {
                span.tag { (mount.kind) }
                span.tag { (if mount.writable { "read-write" } else { "read-only" }) }
                @if let Some((state, why)) = mount.trouble { span.tag.warn { (state) ": " (why) } }
            }
            @match &mount.nodes {
                None => {}
                Some(nodes) if nodes.is_empty() => { p.muted { "No arrays or groups" } }
                Some(nodes) => {
                    @let pictures: Vec<_> = nodes.iter().filter_map(|node| Some((node, thumbnail::of(node)?))).collect();
                    @if !pictures.is_empty() {
                        ul.gallery {
                            @for (node, picture) in &pictures {
                                li {
                                    a href=(node.item.href) {
                                        (thumbnail::medium(picture))
                                        bdi { (name(&node.item.name)) }
                                    }
                                }
                            }
                        }
                    }
                    ul.nodes {
                        @for node in nodes.iter().filter(|node| !pictures.iter().any(|(shown, _)| shown.item.href == node.item.href)) {
                            li { a.(node.item.class()) href=(node.item.href) { bdi { (name(&node.item.name)) } } }
                        }
                        @if mount.has_more { li { a.muted href=(mount.href) { "more…" } } }
                    }
                }
            }
            p.muted { a href=(mount.store) { "stored values" } }
        }
    }
}
