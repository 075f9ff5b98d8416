//! The graph of imports among the files of `src/`.
//!
//! An arrow leads from a file to each file that defines a name it uses: by a `use`, by a path of two or more segments in
//! a body, or by such a path in the arguments of a macro. Re-exports are followed to the definition, so a `mod.rs` that
//! only declares and re-exports has no arrows towards it. A declaration `mod x;` is no import, and neither is the import
//! of a module as such: the names used through it count. Code under `#[cfg(test)]` does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::sources::{Source, attributes_of, is_cfg_test};

/// Files, each with those that it imports from.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Segments of a path.
type Path = Vec<String>;

/// More steps than any chain of re-exports has.
const MAX_STEPS: usize = 24;

/// What one module defines and imports.
#[derive(Default)]
struct Module {
    /// The file with the module's body; none for a folder without one.
    file: Option<String>,
    items: BTreeSet<String>,
    /// Names that a `use` brings into scope. One name may stand for a type, a function and a macro.
    bindings: HashMap<String, Vec<Path>>,
    globs: Vec<Path>,
    /// Paths that the module's bodies and `use` declarations name.
    named: Vec<Path>,
}

/// The modules of the crate, by their paths from its root.
struct Modules(HashMap<Path, Module>);

pub fn graph(sources: &[Source]) -> Graph {
    let modules = Modules::new(sources);
    let mut graph = Graph::new();
    for (path, module) in &modules.0 {
        let Some(file) = &module.file else { continue };
        let imported = module.named.iter().flat_map(|named| modules.files(path, named, 0));
        graph.entry(file.clone()).or_default().extend(imported.filter(|other| other != file));
    }
    graph
}

impl Modules {
    fn new(sources: &[Source]) -> Self {
        let mut modules = HashMap::new();
        for source in sources.iter().filter(|source| !source.is_test() && source.path != "main.rs") {
            let syntax = source.syntax();
            collect(&mut modules, module_path(&source.path), &source.path, &syntax.items);
        }
        Self(modules)
    }

    /// The files that define what a path names in a module. None for names of other crates and for modules.
    fn files(&self, at: &[String], path: &[String], steps: usize) -> BTreeSet<String> {
        let Some((first, rest)) = path.split_first() else { return BTreeSet::new() };
        match first.as_str() {
            _ if steps > MAX_STEPS => BTreeSet::new(),
            "crate" => self.below(&[], rest, steps + 1),
            "self" => self.below(at, rest, steps + 1),
            "super" => self.files_above(at, rest, steps),
            _ => self.below(at, path, steps + 1),
        }
    }

    fn files_above(&self, at: &[String], rest: &[String], steps: usize) -> BTreeSet<String> {
        let above = &at[..at.len().saturating_sub(1)];
        match rest.first().map(String::as_str) {
            Some("super") => self.files(above, rest, steps + 1),
            _ => self.below(above, rest, steps + 1),
        }
    }

    /// As [`files`](Self::files), for a path whose first segment is a name in the module.
    fn below(&self, at: &[String], path: &[String], steps: usize) -> BTreeSet<String> {
        let (Some(module), Some((name, rest))) = (self.0.get(at), path.split_first()) else {
            return BTreeSet::new();
        };
        if steps > MAX_STEPS {
            return BTreeSet::new();
        }
        // A module and a function may have one name.
        let child = [at, std::slice::from_ref(name)].concat();
        if !rest.is_empty() && self.0.contains_key(&child) {
            return self.below(&child, rest, steps + 1);
        }
        if module.items.contains(name) {
            return module.file.iter().cloned().collect();
        }
        if name == "*" {
            return module.file.iter().filter(|_| !module.items.is_empty()).cloned().collect();
        }
        let bound = module.bindings.get(name).into_iter().flatten();
        let by_name = bound.map(|target| [target.as_slice(), rest].concat());
        let by_glob = module.globs.iter().map(|target| [target.as_slice(), path].concat());
        by_name.chain(by_glob).flat_map(|target| self.files(at, &target, steps + 1)).collect()
    }
}

/// The module that a file below `src/` is the body of.
fn module_path(file: &str) -> Path {
    let mut segments: Path = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    segments.pop_if(|last| last == "mod" || last == "lib");
    segments
}

fn collect(modules: &mut HashMap<Path, Module>, path: Path, file: &str, items: &[syn::Item]) {
    let mut collector = Collector::default();
    for item in items.iter().filter(|item| !is_cfg_test(attributes_of(item))) {
        if let Some(name) = defined(item) {
            collector.module.items.insert(name);
        }
        collector.visit_item(item);
    }
    for (name, items) in collector.inline {
        collect(modules, [path.as_slice(), &[name]].concat(), file, items);
    }
    let module = modules.entry(path).or_default();
    // Variants of one module for several platforms are merged.
    module.file = Some(file.to_owned());
    module.items.extend(collector.module.items);
    module.bindings.extend(collector.module.bindings);
    module.globs.extend(collector.module.globs);
    module.named.extend(collector.module.named);
}

/// The name that an item defines in its module.
fn defined(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Walks the syntax of one module.
#[derive(Default)]
struct Collector<'a> {
    module: Module,
    inline: Vec<(String, &'a [syn::Item])>,
}

impl Collector<'_> {
    fn import(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&with(&path.ident), &path.tree),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.import(prefix, item)),
            syn::UseTree::Glob(_) => {
                self.module.named.push([prefix, &["*".to_owned()]].concat());
                self.module.globs.push(prefix.to_vec());
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.bind(prefix.last().cloned().unwrap_or_default(), prefix.to_vec());
            }
            syn::UseTree::Name(name) => self.bind(name.ident.to_string(), with(&name.ident)),
            syn::UseTree::Rename(rename) if rename.ident == "self" => {
                self.bind(rename.rename.to_string(), prefix.to_vec());
            }
            syn::UseTree::Rename(rename) => self.bind(rename.rename.to_string(), with(&rename.ident)),
        }
    }

    fn bind(&mut self, name: String, path: Path) {
        self.module.named.push(path.clone());
        // `use tokio;` binds the name to itself.
        if path != [name.as_str()] {
            self.module.bindings.entry(name).or_default().push(path);
        }
    }

    /// Paths in tokens that are not parsed, as those of a macro's arguments.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.name(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.name(path);
    }

    fn name(&mut self, path: Path) {
        // A single segment is defined here or imported by a `use`, which counts already.
        if path.len() > 1 {
            self.module.named.push(path);
        }
    }
}

impl<'a> Visit<'a> for Collector<'a> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !is_cfg_test(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_cfg_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if let Some((_, items)) = &module.content {
            self.inline.push((module.ident.to_string(), items.as_slice()));
        }
    }

    fn visit_item_use(&mut self, import: &'a syn::ItemUse) {
        self.import(&[], &import.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.name(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Paths of visibilities, as `pub(in crate::store)`, import nothing.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.scan(list.tokens.clone());
        }
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.visit_path(&called.path);
        self.scan(called.tokens.clone());
    }
}

#[test]
fn imports_lead_to_the_file_that_defines_the_name() {
    let sources = [
        Source::new("lib.rs", "pub mod a; pub mod b; pub mod c;"),
        Source::new("a/mod.rs", "mod x; mod y; pub use x::{One, two as renamed}; pub use y::*;"),
        Source::new("a/x.rs", "pub struct One; pub fn two() {}"),
        Source::new(
            "a/y.rs",
            "pub struct Three; fn z() {} pub mod z { pub struct Four; } #[cfg(windows)] mod z {}",
        ),
        Source::new("b.rs", "pub use crate::a::One as Uno;"),
    ];
    for (text, imported) in [
        ("use crate::a::One;", &["a/x.rs"][..]),
        ("use crate::{a::{self, renamed}, b::Uno};", &["a/x.rs"]),
        ("use crate::a::Three;", &["a/y.rs"]),
        ("use crate::a;", &[]),
        ("use crate::a; fn f() -> a::Three { a::Three }", &["a/y.rs"]),
        ("use crate::a as other; fn f() { other::renamed() }", &["a/x.rs"]),
        ("fn f() { super::a::renamed() }", &["a/x.rs"]),
        ("fn f() { println!(\"{}\", crate::a::renamed()) }", &["a/x.rs"]),
        ("#[derive(Debug)] struct S<T>(Vec<T>) where T: Into<crate::b::Uno>;", &["a/x.rs"]),
        ("mod inner { use super::super::a::Three; }", &["a/y.rs"]),
        ("fn f() { use crate::a::One; }", &["a/x.rs"]),
        ("use crate::a::y::z::Four;", &["a/y.rs"]),
        ("#[cfg(test)] mod tests { use crate::a::One; }", &[]),
        ("#[cfg(test)] use crate::a::One;", &[]),
        ("pub(in crate::a) struct S; use std::fmt; use tokio; fn f() { fmt::format(tokio::x()) }", &[]),
    ] {
        let file = "c.rs";
        let mut sources: Vec<Source> =
            sources.iter().map(|source| Source::new(&source.path, &source.text)).collect();
        sources.push(Source::new(file, text));
        let graph = graph(&sources);
        let expected: BTreeSet<String> = imported.iter().map(|&file| file.to_owned()).collect();
        assert_eq!(graph[file], expected, "{text}");
    }
}
