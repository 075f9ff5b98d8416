//! No circles of files: no file imports from another that imports from it, directly or through others.
//!
//! A `mod.rs` is no exception: one that only declares, documents and re-exports its children is in no circle, because an
//! import through it counts as an import from the child.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::imports::{Graph, graph};
use super::sources::{Source, sources};

/// Groups of files that import from each other, the largest first; each group is sorted.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let mut search = Search { graph, order: BTreeMap::new(), stack: Vec::new(), groups: Vec::new() };
    for file in graph.keys() {
        if !search.order.contains_key(file.as_str()) {
            search.enter(file);
        }
    }
    search.groups.sort_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
    search.groups
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    graph: &'a Graph,
    /// When each file was entered, counted from zero.
    order: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    groups: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a> {
    /// The order of the first file on the stack that is reachable from this one.
    fn enter(&mut self, file: &'a str) -> usize {
        let own = self.order.len();
        self.order.insert(file, own);
        self.stack.push(file);
        let mut lowest = own;
        for next in self.graph.get(file).into_iter().flatten() {
            match self.order.get(next.as_str()) {
                None => lowest = lowest.min(self.enter(next)),
                Some(&order) if self.stack.contains(&next.as_str()) => lowest = lowest.min(order),
                Some(_) => {}
            }
        }
        if lowest == own {
            let start = self.stack.iter().position(|&other| other == file).unwrap_or_default();
            let mut group = self.stack.split_off(start);
            if group.len() > 1 {
                group.sort_unstable();
                self.groups.push(group);
            }
        }
        lowest
    }
}

/// A group with, for each file, the imports that keep it in the group.
fn print(group: &[&str], graph: &Graph) -> String {
    let mut text = format!("{} files import from each other:\n", group.len());
    for &file in group {
        let imports: Vec<&str> =
            graph[file].iter().map(String::as_str).filter(|other| group.contains(other)).collect();
        writeln!(text, "    {file} -> {}", imports.join(", ")).unwrap();
    }
    text
}

#[test]
fn no_files_import_from_each_other() {
    let graph = graph(&sources());
    assert!(graph.values().map(std::collections::BTreeSet::len).sum::<usize>() > graph.len());
    let groups: Vec<String> = circles(&graph).iter().map(|group| print(group, &graph)).collect();
    assert!(groups.is_empty(), "\n{}", groups.join("\n"));
}

#[test]
fn every_circle_is_reported_with_the_imports_that_close_it() {
    let sources = [
        Source::new("lib.rs", "mod a; mod b; mod c; mod d;"),
        Source::new("a/mod.rs", "mod x; pub use x::X;"),
        Source::new("a/x.rs", "pub struct X(crate::b::Y);"),
        Source::new("b.rs", "pub struct Y; fn f() { crate::c::g() }"),
        Source::new("c.rs", "use crate::a::X; pub fn g() {}"),
        Source::new("d.rs", "use crate::a::X; pub struct Z;"),
    ];
    let graph = graph(&sources);
    let group = ["a/x.rs", "b.rs", "c.rs"];
    assert_eq!(circles(&graph), [group]);
    let printed =
        "3 files import from each other:\n    a/x.rs -> b.rs\n    b.rs -> c.rs\n    c.rs -> a/x.rs\n";
    assert_eq!(print(&group, &graph), printed);
}

#[test]
fn a_module_file_that_defines_something_is_in_a_circle_with_the_children_that_use_it() {
    let defining = [
        Source::new("a/mod.rs", "mod x; pub use x::X; pub struct Own;"),
        Source::new("a/x.rs", "pub struct X(super::Own);"),
    ];
    assert_eq!(circles(&graph(&defining)), [["a/mod.rs", "a/x.rs"]]);
    let declaring = [
        Source::new("a/mod.rs", "mod own; mod x; pub use own::Own; pub use x::X;"),
        Source::new("a/x.rs", "pub struct X(super::Own);"),
        Source::new("a/own.rs", "pub struct Own;"),
    ];
    assert!(circles(&graph(&declaring)).is_empty());
}
