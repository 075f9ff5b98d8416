//! No circles of files: no file imports from another that imports from it, directly or through others.
//!
//! A `mod.rs` is no exception: one that only declares, documents and re-exports its children is in no circle, because an
//! import through it counts as an import from the child.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::imports::{Graph, graph};
use super::sources::{Source, sources};

/// Groups that still have to be taken apart, each as its files with blanks between them. The list becomes shorter and, in
/// the end, empty.
const KNOWN: &[&str] = &[
    "http/access/credential.rs http/access/guard.rs http/access/issuer.rs http/access/mod.rs \
     http/access/principal.rs http/access/rules.rs http/access/signed.rs http/access/token.rs \
     http/access/verified.rs http/admission/gate/mod.rs http/admission/mod.rs http/admission/rates.rs \
     http/admission/share.rs http/caller.rs http/compression.rs http/document.rs http/download.rs \
     http/elements.rs http/extract.rs http/frame.rs http/held.rs http/json_answer.rs http/json_body.rs \
     http/kept.rs http/listing.rs http/metrics/exposition.rs http/metrics/mod.rs http/missing.rs \
     http/origin.rs http/room.rs http/router.rs http/routes/cache.rs http/routes/consolidated.rs \
     http/routes/data.rs http/routes/dav/mod.rs http/routes/dav/multistatus.rs \
     http/routes/dav/propfind.rs http/routes/dav/transfer.rs http/routes/list.rs http/routes/nodes.rs \
     http/routes/partial.rs http/routes/patch.rs http/routes/rechunk.rs http/routes/s3/bucket.rs \
     http/routes/s3/error.rs http/routes/s3/list.rs http/routes/s3/object.rs http/routes/service.rs \
     http/routes/store.rs http/routes/vectors/amplification.rs http/routes/vectors/chunks.rs \
     http/routes/vectors/links.rs http/routes/vectors/mod.rs http/routes/vectors/objects.rs \
     http/routes/vectors/validate.rs http/routes/vectors/vertices.rs http/routes/views.rs \
     http/routes/write.rs http/shared_text.rs http/state.rs http/too_large.rs http/views.rs http/warm.rs",
    "codec/adler32.rs codec/astype.rs codec/base64.rs codec/bitround.rs codec/blosc/ffi.rs \
     codec/blosc/frame.rs codec/blosc/mod.rs codec/blosc/part.rs codec/bytes.rs codec/bz2.rs \
     codec/cast_value.rs codec/categorize.rs codec/chain.rs codec/checksum.rs codec/conditional.rs \
     codec/crc32.rs codec/crc32c.rs codec/delta.rs codec/fixedscaleoffset.rs codec/fletcher32.rs \
     codec/gzip.rs codec/jenkins_lookup3.rs codec/json2.rs codec/lz4.rs codec/lzma/mod.rs \
     codec/n5_default.rs codec/numcodecs_packbits.rs codec/packbits.rs codec/pcodec.rs codec/quantize.rs \
     codec/registry.rs codec/reshape.rs codec/scale_offset.rs codec/sharding_indexed/index.rs \
     codec/sharding_indexed/mod.rs codec/shuffle.rs codec/transpose.rs codec/vlen.rs codec/zfp.rs \
     codec/zlib.rs codec/zstd.rs",
    "vectors/attributes.rs vectors/bbox.rs vectors/cells/keys.rs vectors/cells/list.rs \
     vectors/cells/mod.rs vectors/cells/short_keys.rs vectors/chunk.rs vectors/context.rs \
     vectors/error.rs vectors/level.rs vectors/links.rs vectors/mod.rs vectors/object_rows.rs \
     vectors/objects.rs vectors/read_plan.rs vectors/root.rs vectors/select.rs vectors/shapes.rs \
     vectors/stats.rs vectors/store.rs vectors/touched.rs vectors/vertex_stream.rs vectors/vertices.rs \
     vectors/walk.rs",
    "store/backend/mod.rs store/local/directories.rs store/local/disk.rs store/local/erase.rs \
     store/local/list.rs store/local/mod.rs store/local/nonblocking.rs store/local/overlap.rs \
     store/local/read.rs store/local/root.rs store/local/staging.rs store/local/watch.rs \
     store/local/write.rs store/mod.rs store/object/mod.rs store/observed.rs store/open.rs \
     store/options.rs store/partial.rs store/zip/load.rs store/zip/mod.rs",
    "render/arrow/columns.rs render/arrow/mod.rs render/arrow/types.rs render/csv.rs \
     render/json/element.rs render/json/mod.rs render/mod.rs render/npy_text.rs render/packed.rs \
     render/vertices/arrow.rs render/vertices/binary.rs render/vertices/json.rs render/vertices/mod.rs",
    "array/dependencies.rs array/dependent.rs array/mod.rs array/open.rs array/plan.rs array/read.rs \
     array/snapshot.rs",
    "views/dependent_set.rs views/document.rs views/list.rs views/listing_segment.rs views/order.rs \
     views/view.rs views/view_array.rs",
    "vectors/payload/cursor.rs vectors/payload/fragments.rs vectors/payload/links.rs \
     vectors/payload/manifest.rs vectors/payload/mod.rs vectors/payload/rows.rs",
    "config/access.rs config/layers.rs config/machine.rs config/memory.rs config/mod.rs",
    "hierarchy/children.rs hierarchy/consolidate.rs hierarchy/dependents.rs hierarchy/locate.rs \
     hierarchy/mod.rs",
    "http/coding.rs http/conditions.rs http/negotiate.rs http/problem.rs http/range.rs",
    "app/banner.rs app/check.rs app/mod.rs app/mounts.rs",
    "key/mod.rs key/node_path.rs key/store_key.rs",
    "metadata/attributes.rs metadata/compact.rs metadata/json.rs",
    "metadata/chunk_key_encoding.rs metadata/key_template.rs metadata/model.rs",
    "vectors/validate/data.rs vectors/validate/links.rs vectors/validate/manifests.rs",
    "views/rechunk/chunk.rs views/rechunk/list.rs views/rechunk/store.rs",
    "cache/mod.rs cache/source.rs",
    "cache/single_flight.rs cache/weighted_cache.rs",
    "chunk/extended_keys.rs chunk/key_encoding.rs",
    "config/error.rs config/tree.rs",
    "cpu/drop_on_pool.rs cpu/mod.rs",
    "metadata/data_type/mod.rs metadata/data_type/structure.rs",
    "store/local/settled.rs store/local/version.rs",
    "store/object/list.rs store/object/pages.rs",
];

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

/// What is wrong: a circle that is not known, and a known one that is there no longer.
fn breaches(graph: &Graph, known: &[&str]) -> Vec<String> {
    let found = circles(graph);
    let known: Vec<Vec<&str>> = known.iter().map(|group| group.split_whitespace().collect()).collect();
    let new = found.iter().filter(|group| !known.contains(group));
    let gone = known.iter().filter(|group| !found.contains(group));
    new.map(|group| print(group, graph))
        .chain(gone.map(|group| {
            format!(
                "KNOWN has a group that is gone or has changed: {}
",
                group.join(" ")
            )
        }))
        .collect()
}

#[test]
fn no_files_import_from_each_other() {
    let graph = graph(&sources());
    assert!(graph.values().map(std::collections::BTreeSet::len).sum::<usize>() > graph.len());
    let breaches = breaches(&graph, KNOWN);
    let groups: Vec<String> =
        circles(&graph).iter().map(|group| format!("    {:?},\n", group.join(" "))).collect();
    assert!(breaches.is_empty(), "\n{}\nAll groups, for KNOWN:\n{}", breaches.join("\n"), groups.concat());
}

#[test]
fn every_circle_is_seen_with_the_imports_that_close_it() {
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
    assert_eq!(breaches(&graph, &[]), [printed]);
    assert!(breaches(&graph, &["a/x.rs b.rs c.rs"]).is_empty());
    let gone = ["a/x.rs b.rs c.rs", "d.rs e.rs"];
    assert_eq!(breaches(&graph, &gone), ["KNOWN has a group that is gone or has changed: d.rs e.rs\n"]);
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
