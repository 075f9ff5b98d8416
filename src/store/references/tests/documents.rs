//! What documents say, and which are refused.

use serde_json::json;

use crate::error::{Classify, ErrorClass};
use crate::store::container::ContainerError as _;
use crate::store::{ContainerBudget, Reference, ReferenceError, ReferenceTable, parse_kerchunk};

fn parse(document: &serde_json::Value) -> Result<ReferenceTable, ReferenceError> {
    parse_kerchunk(document.to_string().as_bytes(), &ContainerBudget::default())
}

/// Every key with what it leads to, as text.
fn entries(table: &ReferenceTable) -> Vec<(String, String)> {
    let entry = |at| {
        let reference = match table.reference(at).unwrap() {
            Reference::Inline(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Reference::Whole(url) => format!("<{url}>"),
            Reference::Part { url, offset, length } => format!("<{url}> {offset}+{length}"),
        };
        (table.key(at).unwrap().to_owned(), reference)
    };
    (0..table.len()).map(entry).collect()
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn entries_are_sorted_and_of_two_with_one_key_the_later_counts() {
    let document = br#"{"b": "text", "a/0": ["u", 4, 6], "a": ["u"], "c": {"x": [1,2]}, "d": "base64:aGk=", "b": "later",
        "e\u0020\"": ["v", null, null], "a/0": ["w"], "f": ["u", 0, 0]}"#;
    let table = parse_kerchunk(document, &ContainerBudget::default()).unwrap();
    let all = [
        ("a", "<u>"),
        ("a/0", "<w>"),
        ("b", "later"),
        ("c", r#"{"x": [1,2]}"#),
        ("d", "hi"),
        ("e \"", "<v>"),
        ("f", "<u> 0+0"),
    ];
    assert_eq!(entries(&table), expected(&all));
    assert_eq!((table.find("a/0"), table.find("a/1"), table.find("")), (Some(1), None, None));
}

#[test]
fn version_1_has_templates_and_rules() {
    let document = json!({
        "version": 1,
        "templates": {"u": "server/path", "f": "{{c}}"},
        "gen": [{
            "key": "gen_key{{i}}", "url": "http://{{u}}_{{i}}", "offset": "{{(i + 1) * 1000}}", "length": "1000",
            "dimensions": {"i": {"stop": 2}},
        }, {
            "key": "x{{i}}.{{j}}", "url": "{{f(c=j)}}", "dimensions": {"i": {"start": 4, "stop": 0, "step": -3}, "j": ["a", 7]},
        }],
        "refs": {
            "key0": "data",
            "key1": ["http://target_url", 10000, 100],
            "key2": ["http://{{u}}", 10000, 100],
            "key3": ["http://{{f(c='text')}}", 10000, 100],
            "key4": ["http://target_url"],
        },
    });
    let all = [
        ("gen_key0", "<http://server/path_0> 1000+1000"),
        ("gen_key1", "<http://server/path_1> 2000+1000"),
        ("key0", "data"),
        ("key1", "<http://target_url> 10000+100"),
        ("key2", "<http://server/path> 10000+100"),
        ("key3", "<http://text> 10000+100"),
        ("key4", "<http://target_url>"),
        ("x1.7", "<7>"),
        ("x1.a", "<a>"),
        ("x4.7", "<7>"),
        ("x4.a", "<a>"),
    ];
    assert_eq!(entries(&parse(&document).unwrap()), expected(&all));
    assert!(parse(&json!({"version": 1, "refs": {}})).unwrap().is_empty());
    assert!(parse(&json!({"version": 1, "gen": []})).unwrap().is_empty());
    assert!(parse(&json!({})).unwrap().is_empty());
}

#[test]
fn the_chunk_of_an_array_without_dimensions_is_found_as_virtualizarr_names_it() {
    let table = parse(&json!({"version": 1, "refs": {"scalar/": ["u", 0, 4]}})).unwrap();
    assert_eq!(entries(&table), expected(&[("scalar/0", "<u> 0+4")]));
}

#[test]
fn what_is_no_document_of_references_is_refused() {
    let long = format!("{{\"a\": [\"{}\"]}}", "u".repeat(5000));
    for document in [
        "",
        "[]",
        "1",
        "null",
        "{",
        r#"{"a": 1}"#,
        r#"{"a": null}"#,
        r#"{"a": []}"#,
        r#"{"a": [1]}"#,
        r#"{"a": ["u", 1]}"#,
        r#"{"a": ["u", 1, 2, 3]}"#,
        r#"{"a": ["u", -1, 2]}"#,
        r#"{"a": ["u", 1.5, 2]}"#,
        r#"{"a": ["u", null, 2]}"#,
        r#"{"a": ["u", 9223372036854775807, 9223372036854775807]}"#,
        r#"{"a": ["u", 1e99, 2]}"#,
        r#"{"a": "base64:%"}"#,
        r#"{"../a": "x"}"#,
        r#"{"": "x"}"#,
        r#"{"/a": "x"}"#,
        r#"{"a//b": "x"}"#,
        r#"{"a": "x"} {}"#,
        r#"{"version": 2, "refs": {}}"#,
        r#"{"version": 1, "refs": []}"#,
        r#"{"version": 1, "gen": {}}"#,
        r#"{"version": 1}"#,
        r#"{"version": 1, "templates": {"a": 1}, "refs": {}}"#,
        r#"{"version": 1, "templates": {"a": "{{b"}, "refs": {}}"#,
        r#"{"version": 1, "templates": {"a": "x"}, "refs": {"k": ["{{b}}"]}}"#,
        r#"{"version": 1, "templates": {"a": "x"}, "refs": {"k": ["{{a|upper}}"]}}"#,
        r#"{"version": 1, "templates": {"a": "{{b(c=1)}}", "b": "{{a(c=1)}}"}, "refs": {"k": ["{{a()}}"]}}"#,
        r#"{"version": 1, "templates": {"a": "{% for x in y %}{{x}}{% endfor %}"}, "refs": {"k": ["{{a()}}"]}}"#,
        r#"{"version": 1, "gen": [{"key": "k", "url": "u", "dimensions": {"i": {"stop": 9000000000000000000}}}]}"#,
        r#"{"version": 1, "gen": [{"key": "k{{i}}", "url": "u", "dimensions": {"i": {"stop": 1, "step": 0}}}]}"#,
        r#"{"version": 1, "gen": [{"key": "k", "url": "u", "offset": "0", "dimensions": {}}]}"#,
        r#"{"version": 1, "gen": [{"key": "k", "url": "u", "offset": "-1", "length": "1", "dimensions": {}}]}"#,
        "\u{feff}{}",
        &long,
    ] {
        let refused = parse_kerchunk(document.as_bytes(), &ContainerBudget::default());
        let refused = refused.expect_err(document);
        assert_eq!(refused.class(), ErrorClass::ReferencesRefused, "{document}");
        assert!(refused.is_lasting(), "{document}");
    }
    parse_kerchunk(b"{\"a\": \"\xff\"}", &ContainerBudget::default()).expect_err("not UTF-8");
}

#[test]
fn a_document_of_nested_lists_is_refused_without_a_deep_stack() {
    for document in
        ["[".repeat(1 << 20), format!("{{\"a\": {}", "[".repeat(1 << 20)), "{\"a\":".repeat(1 << 18)]
    {
        parse_kerchunk(document.as_bytes(), &ContainerBudget::default()).expect_err("deep");
    }
}

#[test]
fn what_a_document_takes_is_reserved_first_and_released_with_its_table() {
    let many = json!({"version": 1, "gen": [{
        "key": "a/{{i}}", "url": "file-{{i}}", "dimensions": {"i": {"stop": 100_000}}
    }]});
    let text = many.to_string();
    let budget = ContainerBudget::new(1 << 20);
    let refused = parse_kerchunk(text.as_bytes(), &budget).unwrap_err();
    assert!(matches!(refused, ReferenceError::OverBudget { .. }), "{refused:?}");
    let whole = || budget.empty().resize(1 << 20);
    whole().expect("all of it is free again");
    let table = parse_kerchunk(br#"{"a": "x"}"#, &budget).unwrap();
    whole().expect_err("the table is held");
    drop(table);
    whole().unwrap();
    let table = parse_kerchunk(text.as_bytes(), &ContainerBudget::default()).unwrap();
    assert_eq!(table.len(), 100_000);
    assert_eq!(
        table.find("a/99999").and_then(|at| table.reference(at)),
        Some(Reference::Whole("file-99999"))
    );
}
