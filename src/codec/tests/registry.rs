//! The table of codecs: names are unique, and each has the stage that v2 documents depend on.

use std::collections::HashSet;

use crate::codec::factory::Codec;
use crate::codec::registry::{all, by_name, v2_codec};
use crate::metadata::CodecStage;

fn v2_ids(stage: CodecStage, of_objects: bool) -> Vec<&'static str> {
    let codecs = all().filter(|codec| codec.factory.stage() == stage).flat_map(|codec| codec.v2);
    let mut ids: Vec<_> =
        codecs.filter(|codec| codec.objects.is_some() == of_objects).map(|codec| codec.id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn no_two_codecs_share_a_name() {
    let mut names = HashSet::new();
    let mut ids = HashSet::new();
    for codec in all() {
        assert!(codec.names.iter().all(|name| names.insert(*name)), "{:?}", codec.names);
        assert!(codec.v2.iter().all(|v2| ids.insert(v2.id)), "{:?}", codec.names);
    }
}

#[test]
fn every_codec_is_found_by_each_of_its_names() {
    for codec in all() {
        for name in codec.names {
            assert!(by_name(name).is_some_and(|found| std::ptr::eq(found, codec)), "{name}");
        }
        for v2 in codec.v2 {
            assert_eq!(v2_codec(v2.id), Some((codec.factory.stage(), v2)));
        }
    }
    assert!(by_name("no such codec").is_none() && v2_codec("no such codec").is_none());
}

#[test]
fn the_name_of_a_v2_codec_in_the_model_is_a_name_of_the_same_codec() {
    for Codec { names, v2, .. } in all() {
        assert!(v2.iter().all(|v2| names.contains(&v2.name)), "{names:?}");
    }
}

#[test]
fn v2_codecs_have_the_stage_that_their_bytes_need() {
    assert_eq!(
        v2_ids(CodecStage::BytesToBytes, false),
        [
            "adler32",
            "base64",
            "blosc",
            "bz2",
            "crc32",
            "crc32c",
            "fletcher32",
            "gzip",
            "jenkins_lookup3",
            "lz4",
            "lzma",
            "shuffle",
            "zlib",
            "zstd",
        ]
    );
    assert_eq!(
        v2_ids(CodecStage::ArrayToBytes, true),
        ["json", "json2", "vlen-array", "vlen-bytes", "vlen-utf8"]
    );
    assert_eq!(v2_ids(CodecStage::ArrayToBytes, false), ["pcodec", "zfpy"]);
    assert_eq!(v2_ids(CodecStage::ArrayToArray, true), ["categorize"]);
    assert_eq!(
        v2_ids(CodecStage::ArrayToArray, false),
        ["astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize"]
    );
}
