//! No two types of one name: a reader who knows a type by its name is right wherever the name stands.
//!
//! Types that are visible outside of their module count. Private ones do not, and neither do tests.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use super::sources::{Source, attributes_of, is_cfg_test, sources};

/// Names that several types may have, each with the reason.
const SHARED: &[(&str, &str)] = &[];

/// The visible types of one file.
#[derive(Default)]
struct Types(Vec<(String, usize)>);

impl Types {
    fn add(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if !matches!(visibility, syn::Visibility::Inherited) {
            self.0.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'a> Visit<'a> for Types {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if is_cfg_test(attributes_of(item)) {
            return;
        }
        match item {
            syn::Item::Enum(item) => self.add(&item.vis, &item.ident),
            syn::Item::Struct(item) => self.add(&item.vis, &item.ident),
            syn::Item::Trait(item) => self.add(&item.vis, &item.ident),
            syn::Item::Type(item) => self.add(&item.vis, &item.ident),
            syn::Item::Union(item) => self.add(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

fn breaches(sources: &[Source], shared: &[&str]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let mut types = Types::default();
        types.visit_file(&source.syntax());
        for (name, line) in types.0 {
            places.entry(name).or_default().push(format!("src/{}:{line}", source.path));
        }
    }
    let file = |place: &String| place.split(':').next().map(str::to_owned);
    // Variants for several platforms stand in one file.
    for places in places.values_mut() {
        places.dedup_by_key(|place| file(place));
    }
    places.retain(|_, places| places.len() > 1);
    let new = places.iter().filter(|(name, _)| !shared.contains(&name.as_str()));
    let gone = shared.iter().filter(|name| !places.contains_key(**name));
    new.map(|(name, places)| format!("`{name}` is several types: {}", places.join(", ")))
        .chain(gone.map(|name| format!("`{name}` is listed and is not several types")))
        .collect()
}

#[test]
fn no_two_visible_types_have_one_name() {
    let shared: Vec<&str> = SHARED.iter().map(|(name, _)| *name).collect();
    let breaches = breaches(&sources(), &shared);
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn every_name_of_two_types_is_reported() {
    let sources = [
        Source::new("a.rs", "\npub struct Entry;\nstruct Private;"),
        Source::new("b.rs", "mod inner {\n    pub(super) enum Entry {}\n    pub struct Private;\n}"),
        Source::new("c.rs", "#[cfg(test)]\npub struct Entry;"),
        Source::new("d/tests.rs", "pub struct Entry;"),
    ];
    let printed = "`Entry` is several types: src/a.rs:2, src/b.rs:2";
    assert_eq!(breaches(&sources, &[]), [printed]);
    assert!(breaches(&sources, &["Entry"]).is_empty());
    assert_eq!(breaches(&sources, &["Entry", "Node"]), ["`Node` is listed and is not several types"]);
}
