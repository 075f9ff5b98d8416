//! Route templates are said once: text that starts like a route stands only where routes are specified.
//!
//! Every string in code counts, those in attributes and in arguments of macros too. Comments and tests do not.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::sources::{Source, sources};

/// How a route's template starts.
const BEGINNINGS: [&str; 10] = [
    "/v1/",
    "/store/",
    "/plain/",
    "/unshard/",
    "/rechunk/",
    "/pyramid/",
    "/view/",
    "/s3",
    "/tiles/",
    "/dap/",
];

/// Files below `src/` that specify routes. A path with a slash at its end is a folder.
const SPECIFIED_IN: &[&str] = &[
    "api/",
    // A signed URL is a path of `/store`.
    "auth/signed_url.rs",
    // A collector's route, which OTLP specifies.
    "telemetry/otlp.rs",
];

/// Whether a string begins with a route, or goes on with one behind a value, as `"{base}/v1/data"` does.
fn is_route(text: &str) -> bool {
    let behind_value = text.strip_prefix('{').and_then(|text| text.split_once('}')).map(|(_, rest)| rest);
    let starts = |text: &str| BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    starts(text) || behind_value.is_some_and(starts)
}

/// The strings in tokens, with their lines. Documentation and what is under `#[cfg(test)]` is left out.
fn strings(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let attribute = tokens.peek().map(ToString::to_string).unwrap_or_default().replace(' ', "");
                if attribute.starts_with("[doc=") || attribute.starts_with("![doc=") {
                    tokens.next();
                } else if attribute == "[cfg(test)]" {
                    skip_item(&mut tokens);
                }
            }
            // An inner attribute: `#![doc = …]`.
            TokenTree::Punct(punct)
                if punct.as_char() == '!'
                    && tokens
                        .peek()
                        .is_some_and(|next| next.to_string().replace(' ', "").starts_with("[doc=")) =>
            {
                tokens.next();
            }
            TokenTree::Group(group) => strings(group.stream(), found),
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                match syn::Lit::new(literal) {
                    syn::Lit::Str(text) => found.push((line, text.value())),
                    syn::Lit::ByteStr(bytes) => {
                        found.push((line, String::from_utf8_lossy(&bytes.value()).into_owned()));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Skips an attribute's brackets and the item behind it, up to its braces or its semicolon.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    for token in tokens.by_ref() {
        if ends(&token) {
            break;
        }
    }
}

fn routes_in(source: &Source) -> Vec<(usize, String)> {
    let tokens =
        TokenStream::from_str(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut found = Vec::new();
    strings(tokens, &mut found);
    found.retain(|(_, text)| is_route(text));
    found
}

fn is_specified_in(path: &str, allowed: &str) -> bool {
    if allowed.ends_with('/') { path.starts_with(allowed) } else { path == allowed }
}

fn breaches(sources: &[Source], allowed: &[&str]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut used = vec![false; allowed.len()];
    for source in sources.iter().filter(|source| !source.is_test()) {
        let place = allowed.iter().position(|allowed| is_specified_in(&source.path, allowed));
        for (line, text) in routes_in(source) {
            match place {
                Some(place) => used[place] = true,
                None => breaches.push(format!("src/{}:{line}: {text:?} spells a route", source.path)),
            }
        }
    }
    let unused = allowed.iter().zip(used).filter(|(_, used)| !used);
    breaches.extend(unused.map(|(allowed, _)| format!("SPECIFIED_IN has {allowed}, which spells no route")));
    breaches
}

#[test]
fn routes_are_spelled_only_where_they_are_specified() {
    let breaches = breaches(&sources(), SPECIFIED_IN);
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn every_route_is_reported_at_its_line() {
    for (text, breach) in [
        ("fn f() {\n    g(\"/v1/data/{mount}/{*path}\")\n}", "src/a.rs:2: \"/v1/data/{mount}/{*path}\""),
        ("#[utoipa::path(get, path = \"/store/{mount}/{*key}\")]\nfn f() {}", "src/a.rs:1: \"/store/"),
        ("const A: &[u8] = b\"/s3/\";", "src/a.rs:1: \"/s3/\""),
        ("fn f() { format!(r\"{base}/plain/{mount}\") }", "src/a.rs:1: \"{base}/plain/"),
        ("#[cfg(test)]\nmod tests;\nconst A: &str = \"/unshard/\";", "src/a.rs:3: \"/unshard/\""),
    ] {
        let found = breaches(&[Source::new("a.rs", text)], &[]);
        assert!(found.len() == 1 && found[0].starts_with(breach), "{text}\n  gave {found:?}");
    }
    let plain = [Source::new("a.rs", "fn f() {}")];
    assert_eq!(breaches(&plain, &["a.rs"]), ["SPECIFIED_IN has a.rs, which spells no route"]);
}

#[test]
fn documentation_tests_and_other_texts_spell_no_route() {
    for text in [
        "//! /v1/data\n/// \"/v1/data\"\nfn f() {}",
        "#![doc = \"/v1/data\"]",
        "#[cfg(test)]\nmod tests {\n    const A: &str = \"/v1/data\";\n}",
        "#[cfg(test)]\nconst A: &str = \"/v1/data\";",
        "const A: &str = \"see /v1/data\";",
        "const A: &str = \"v1/data\";",
    ] {
        assert_eq!(breaches(&[Source::new("a.rs", text)], &[]), [""; 0], "{text}");
    }
    let route = "const A: &str = \"/v1/data\";";
    assert_eq!(breaches(&[Source::new("web/a.rs", route)], &["web/"]), [""; 0]);
    assert_eq!(breaches(&[Source::new("web/tests/a.rs", route)], &[]), [""; 0]);
}
