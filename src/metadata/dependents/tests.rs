//! Tests with valid and hostile declarations.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::*;
use crate::metadata::MetadataLimits;

/// A primary of rank 2 with these attributes.
fn primary(attributes: &Value) -> Map<String, Value> {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": "default", "codecs": ["bytes", "gzip"], "dimension_names": ["y", "x"],
        "attributes": attributes,
    });
    document.as_object().unwrap().clone()
}

/// The completed document or error of one dependent, and its diagnostics.
fn outcome(
    dependent: &Value,
    reading: Reading,
) -> (Result<Map<String, Value>, &'static str>, Vec<&'static str>) {
    let document = primary(&json!({"unit": "m", "dependent-arrays": {"d": dependent}}));
    let family = Family::from_primary(&document, reading, &MetadataLimits::default());
    let member = family.find("d").unwrap().unwrap();
    let codes = member.diagnostics.iter().map(|remark| remark.code.as_str()).collect();
    (member.array().map(|_| member.complete().unwrap()).map_err(|error| error.code()), codes)
}

fn errors(dependent: &Value) -> [Option<&'static str>; 2] {
    [Reading::Lenient, Reading::Strict].map(|reading| outcome(dependent, reading).0.err())
}

#[test]
fn members_are_replaced_whole_and_attributes_inherited_without_the_declaration() {
    let (document, _) = outcome(&json!({"fill_value": 3}), Reading::Lenient);
    let document = document.unwrap();
    assert_eq!((&document["fill_value"], &document["shape"]), (&json!(3), &json!([4, 6])));
    assert_eq!(document["attributes"], json!({"unit": "m"}));
    let (document, _) = outcome(&json!({"attributes": {}}), Reading::Lenient);
    assert_eq!(document.unwrap()["attributes"], json!({}));
    // Members are not merged, so the name of the primary's grid is lost.
    let halved = json!({"chunk_grid": {"configuration": {"chunk_shape": [1, 1]}}});
    assert_eq!(errors(&halved), [Some("bad_field"); 2]);
}

#[test]
fn each_kind_of_invalid_dependent_has_a_code() {
    let prefix = |text: &str| json!({"chunk_key_encoding": {"name": "prefix", "configuration": {"prefix": text, "base_encoding": "default"}}});
    for (dependent, code) in [
        (json!([]), "not_object"),
        (json!(null), "not_object"),
        (json!({"zarr_format": 2}), "bad_field"),
        (json!({"node_type": "group"}), "bad_field"),
        (json!({"shape": [4, -6]}), "bad_field"),
        (json!({"shape": [4, 6.0]}), "bad_field"),
        (json!({"shape": null}), "bad_field"),
        (json!({"attributes": null}), "bad_field"),
        (json!({"codecs": null}), "bad_field"),
        (json!({"codecs": []}), "bad_field"),
        (json!({"data_type": null}), "bad_field"),
        (json!({"chunk_grid": null}), "bad_field"),
        (json!({"dimension_names": "yx"}), "bad_field"),
        (json!({"dimension_names": [1, 2]}), "bad_field"),
        (json!({"dimension_names": ["y"]}), "rank_mismatch"),
        (json!({"shape": [4]}), "rank_mismatch"),
        (
            json!({"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, "bytes"]}),
            "rank_mismatch",
        ),
        (json!({"fill_value": null}), "fill_value_mismatch"),
        (json!({"fill_value": 256}), "fill_value_mismatch"),
        (json!({"fill_value": 1.0}), "fill_value_mismatch"),
        (json!({"other": {}}), "must_understand"),
        (json!({"other": null}), "must_understand"),
        (json!({"chunk_key_encoding": null}), "invalid_chunk_key_encoding"),
        (prefix("../"), "invalid_chunk_key_encoding"),
        (prefix("/x"), "invalid_chunk_key_encoding"),
        (json!({"chunk_key_encoding": "hilbert"}), "unsupported_chunk_key_encoding"),
        (json!({"data_type": "int3"}), "unsupported_data_type"),
        (json!({"chunk_grid": "voronoi"}), "unsupported"),
    ] {
        assert_eq!(errors(&dependent), [Some(code); 2], "{dependent}");
    }
    assert_eq!(errors(&json!({"other": {"must_understand": false}})), [None; 2]);
    let mut incomplete = primary(&json!({"dependent-arrays": {"d": {}, "e": {"fill_value": 1}}}));
    incomplete.remove("fill_value");
    let family = Family::from_primary(&incomplete, Reading::Lenient, &MetadataLimits::default());
    let codes: Vec<_> =
        family.members.iter().map(|member| member.array.as_ref().err().map(DependentError::code)).collect();
    assert_eq!(codes, [Some("incomplete"), Some("incomplete"), None]);
}

#[test]
fn dependents_accepted_leniently_with_a_diagnostic_are_rejected_strictly() {
    let suffix = json!({"name": "suffix", "configuration": {"prefix": "s/", "base_encoding": "default"}});
    let line = json!({"name": "regular", "configuration": {"chunk_shape": [2]}});
    for (dependent, remark, code) in [
        (json!({"dimension_names": null}), "null_means_absent", "null_field"),
        (json!({"storage_transformers": null}), "null_means_absent", "null_field"),
        (json!({"shape": [4], "chunk_grid": line}), "inherited_dimension_names_dropped", "rank_mismatch"),
        (json!({"data_type": "int16"}), "bytes_codec_without_endian", "bytes_codec_without_endian"),
        (
            json!({"chunk_key_encoding": suffix}),
            "suffix_encoding_with_prefix_member",
            "invalid_chunk_key_encoding",
        ),
    ] {
        let (document, remarks) = outcome(&dependent, Reading::Lenient);
        assert!(document.is_ok(), "{dependent}: {document:?}");
        assert_eq!(remarks, [remark], "{dependent}");
        assert_eq!(outcome(&dependent, Reading::Strict).0.err(), Some(code), "{dependent}");
    }
}

/// The codes of the primary's diagnostics, and the paths of its dependents.
fn read(attributes: &Value, reading: Reading) -> (Vec<&'static str>, Vec<String>) {
    let document = primary(attributes);
    let family = Family::from_primary(&document, reading, &MetadataLimits::default());
    let remarks = family.members[0].diagnostics.iter().map(|remark| remark.code.as_str()).collect();
    (remarks, family.members[1..].iter().map(|member| member.path.clone()).collect())
}

#[test]
fn either_spelling_of_the_declaration_is_accepted_and_both_ignored_if_they_differ() {
    let d = || vec!["d".to_owned()];
    for (attributes, lenient, strict) in [
        (json!({"dependent-arrays": {"d": {}}}), (vec![], d()), (vec![], d())),
        (json!({"dependent_arrays": {"d": {}}}), (vec!["alias_key"], d()), (vec![], vec![])),
        (
            json!({"dependent-arrays": {"d": {}}, "dependent_arrays": {"d": {}}}),
            (vec!["duplicate_declaration"], d()),
            (vec![], d()),
        ),
        (
            json!({"dependent-arrays": {"d": {}}, "dependent_arrays": {}}),
            (vec!["ambiguous_declaration"], vec![]),
            (vec![], d()),
        ),
        (
            json!({"dependent-arrays": null}),
            (vec!["declaration_not_object"], vec![]),
            (vec!["declaration_not_object"], vec![]),
        ),
        (json!({}), (vec![], vec![]), (vec![], vec![])),
    ] {
        assert_eq!(read(&attributes, Reading::Lenient), lenient, "{attributes}");
        assert_eq!(read(&attributes, Reading::Strict), strict, "{attributes}");
    }
}

#[test]
fn repeated_names_are_rejected_in_a_declaration_and_accepted_in_other_attributes() {
    let parse = |text: &str| parse_primary(text.as_bytes(), &MetadataLimits::default());
    assert!(parse(r#"{"attributes":{"x":{"a":1,"a":2},"dependent-arrays":{"a":{},"b":{"attributes":{"c":1,"c":2}}}}}"#).is_ok());
    for twice in [
        r#"{"attributes":{"dependent-arrays":{"a":{},"a":{}}}}"#,
        r#"{"attributes":{"dependent_arrays":{"a":{"shape":[1],"shape":[2]}}}}"#,
    ] {
        let error = parse(twice).unwrap_err();
        assert_eq!(error.code(), "invalid_json");
        assert!(error.to_string().contains("line 1, column "), "{error}");
    }
    assert_eq!(parse("[]").unwrap_err().code(), "bad_field");
}

#[test]
fn an_invalid_name_does_not_affect_other_dependents() {
    let names = ["", "a/b", "..", "__a", "zarr.json", "a\nb", "good", "été"];
    let declaration: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    let document = primary(&json!({"dependent-arrays": declaration}));
    let family = Family::from_primary(&document, Reading::Lenient, &MetadataLimits::default());
    let good: Vec<&str> = family
        .members
        .iter()
        .filter(|member| member.array.as_ref().err().is_none_or(|error| error.code() != "invalid_name"))
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(good, ["", "good", "été"]);
    assert_eq!(family.members.len(), names.len() + 1);
    assert!(family.find("a/b").unwrap().is_none());
    let accented = family.find("été").unwrap().unwrap();
    assert_eq!(accented.diagnostics[0].code, DiagnosticCode::NonrecommendedName);
}

#[test]
fn eight_levels_of_dependents_are_accepted_and_nine_rejected() {
    let nested = |depth: usize| {
        (0..depth).fold(json!({}), |inner, _| json!({"attributes": {"dependent-arrays": {"d": inner}}}))
    };
    let document = primary(&nested(9)["attributes"]);
    let family = Family::from_primary(&document, Reading::Lenient, &MetadataLimits::default());
    assert_eq!(family.members.len(), 10);
    assert_eq!(family.members[8].path, ["d"; 8].join("/"));
    assert!(family.members[8].array.is_ok());
    assert_eq!(family.members[9].array.as_ref().unwrap_err().code(), "too_deep");
}

#[test]
fn the_number_of_dependents_is_bounded_for_declarations_of_any_size() {
    let many: Map<String, Value> = (0..3000).map(|number| (format!("d{number:04}"), json!({}))).collect();
    let document = primary(&json!({"dependent-arrays": many, "long": vec!["x"; 100_000]}));
    let family = Family::from_primary(&document, Reading::Lenient, &MetadataLimits::default());
    assert_eq!(family.members.len(), 1024);
    assert_eq!(family.members[0].diagnostics[0].code, DiagnosticCode::TooMany);
    assert!(family.find("d0001").unwrap().is_some());
    assert_eq!(family.find("d2999").unwrap_err(), DependentError::TooMany);

    // A few dependents may inherit as many values as many small ones have.
    let mut document = primary(&json!({"dependent-arrays": many}));
    let edges: Vec<u64> = vec![1; 200_000];
    document["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [edges, 2]}});
    let family = Family::from_primary(&document, Reading::Lenient, &MetadataLimits::default());
    assert!(family.members.len() < 10, "{}", family.members.len());
    assert_eq!(family.members[0].diagnostics[0].code, DiagnosticCode::TooMany);
}

fn values() -> impl Strategy<Value = Value> {
    let encoding = json!({"name": "prefix", "configuration": {"prefix": "a/", "base_encoding": "v2"}});
    let leaf = prop_oneof![
        select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(1e300),
            json!(3),
            json!([]),
            json!({})
        ]),
        select(vec![
            json!("uint8"),
            json!("float32"),
            json!("bytes"),
            json!("array"),
            json!("default"),
            encoding
        ]),
        "[a-z./]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    let known = [
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "codecs",
        "fill_value",
        "attributes",
        "name",
        "dimension_names",
        "configuration",
        "dependent-arrays",
        "dependent_arrays",
        "must_understand",
        "chunk_shape",
    ];
    prop_oneof![3 => select(known.map(str::to_owned).to_vec()), 1 => "[a-z/_.]{0,4}"]
}

proptest! {
    #[test]
    fn any_declaration_parses_and_valid_dependents_have_valid_documents(
        declaration in values(),
        other in values(),
        alias in any::<bool>(),
    ) {
        let mut attributes = json!({"dependent-arrays": {"a": declaration, "b": other}});
        if alias {
            attributes = json!({"dependent_arrays": attributes["dependent-arrays"], "dependent-arrays": other});
        }
        let document = primary(&attributes);
        for reading in [Reading::Lenient, Reading::Strict] {
            let family = Family::from_primary(&document, reading, &MetadataLimits::default());
            for member in &family.members {
                let _ = (member.complete(), member.rebased(), member.inherited(), member.array());
                // A valid array parses from its documents, also for readers that do not know the convention.
                if member.array.is_ok() {
                    let mut rebased = member.rebased().unwrap();
                    rebased.insert("codecs".to_owned(), json!(["bytes"]));
                    let text = Value::Object(rebased).to_string();
                    prop_assert!(crate::metadata::v3::parse(text.as_bytes(), &MetadataLimits::default()).is_ok(), "{text}");
                }
            }
        }
    }
}
