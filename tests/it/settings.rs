//! The documentation of all settings exists once, as doc comments of the options structs: `config/default.toml` and the
//! reference page are generated from them.
//!
//! The text of a key is the comment of its field, the text of a section is the comment of its struct, and the text at the top
//! is the comment of `Config`. A key without a default gives an example in the last paragraph of its comment: ``Example: `…` ``.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use syn::ext::IdentExt as _;
use syn::{
    Attribute, Expr, Field, Fields, GenericArgument, Item, ItemStruct, Lit, Meta, PathArguments, Type,
};
use toml::{Table, Value};
use zarrd::config::{Config, MountOptions};

/// Columns of a comment in `config/default.toml`.
const WIDTH: usize = 118;
/// How the last paragraph of a comment begins that gives an example.
const EXAMPLE: &str = "Example: ";
/// What stands in a key for a name that the user chooses.
const NAME: &str = "NAME";

/// What stands in a key for the beginning of URLs.
const PREFIX: &str = "PREFIX";

/// A table of settings.
struct Section {
    path: Vec<String>,
    paragraphs: Vec<String>,
    /// Whether it is there by default. If not, all of it is a comment in `config/default.toml`.
    is_default: bool,
    keys: Vec<Key>,
}

/// A setting.
struct Key {
    name: String,
    paragraphs: Vec<String>,
    /// Its default or, where it has none, an example; as TOML.
    value: String,
    has_default: bool,
}

/// How a field holds another struct of settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Itself,
    Option,
    Map,
}

/// The structs of settings below `src/`, by name.
fn structs() -> BTreeMap<String, ItemStruct> {
    let mut found = BTreeMap::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if !text.contains("deny_unknown_fields") && !text.contains("struct StoreOptions") {
                continue;
            }
            for item in syn::parse_file(&text).unwrap().items {
                // The options of stores reject unknown keys in code of their own.
                if let Item::Struct(item) = item
                    && (item.ident == "StoreOptions"
                        || item.attrs.iter().any(|attribute| says(attribute, "serde", "deny_unknown_fields")))
                {
                    let name = item.ident.to_string();
                    assert!(
                        found.insert(name.clone(), item).is_none(),
                        "two structs of settings are named {name}"
                    );
                }
            }
        }
    }
    found
}

/// Whether an attribute such as `#[serde(default, skip)]` has a word.
fn says(attribute: &Attribute, name: &str, word: &str) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident(name) => {
            list.tokens.to_string().split(',').any(|found| found.trim() == word)
        }
        _ => false,
    }
}

/// The paragraphs of a doc comment. Those of lists have a line for each entry.
fn paragraphs(attributes: &[Attribute]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let (true, Expr::Lit(text)) = (pair.path.is_ident("doc"), &pair.value) else { continue };
        let Lit::Str(text) = &text.lit else { continue };
        let text = text.value();
        let (line, last) = (text.trim(), paragraphs.last_mut().unwrap());
        if line.is_empty() {
            paragraphs.push(String::new());
        } else if last.is_empty() {
            last.push_str(line);
        } else {
            last.push(if line.starts_with("* ") { '\n' } else { ' ' });
            last.push_str(line);
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    assert!(!paragraphs.is_empty(), "a setting has no documentation");
    assert!(
        paragraphs.iter().all(|text| !text.contains("[`")),
        "a link leads nowhere outside of the code: {paragraphs:?}"
    );
    paragraphs
}

/// The struct of settings that a type holds, and how.
fn held<'a>(structs: &'a BTreeMap<String, ItemStruct>, held_by: &Type) -> Option<(Holder, &'a ItemStruct)> {
    let Type::Path(path) = held_by else { return None };
    let last = path.path.segments.last()?;
    if let Some(item) = structs.get(&last.ident.to_string()) {
        return Some((Holder::Itself, item));
    }
    let holder = match last.ident.to_string().as_str() {
        "Option" => Holder::Option,
        "BTreeMap" => Holder::Map,
        _ => return None,
    };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let GenericArgument::Type(inner) = arguments.args.last()? else { return None };
    let (inner, item) = held(structs, inner)?;
    (inner == Holder::Itself).then_some((holder, item))
}

/// The fields of a struct that are settings, with those of the structs that it flattens.
fn fields<'a>(structs: &'a BTreeMap<String, ItemStruct>, item: &'a ItemStruct) -> Vec<&'a Field> {
    let Fields::Named(fields) = &item.fields else { panic!("{} has no named fields", item.ident) };
    let is = |field: &Field, word| field.attrs.iter().any(|attribute| says(attribute, "serde", word));
    let mut found = Vec::new();
    for field in fields.named.iter().filter(|field| !is(field, "skip")) {
        match held(structs, &field.ty) {
            Some((_, inner)) if is(field, "flatten") => found.extend(self::fields(structs, inner)),
            _ => found.push(field),
        }
    }
    found
}

/// The name of a setting in files: that of its field, unless it is renamed.
fn name_of(field: &Field) -> String {
    let renamed = field.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("serde") => {
            let tokens = list.tokens.to_string();
            let (_, rest) = tokens.split_once("rename = \"")?;
            Some(rest.split_once('"').unwrap().0.to_owned())
        }
        _ => None,
    });
    renamed.unwrap_or_else(|| field.ident.as_ref().unwrap().unraw().to_string())
}

/// Adds the section of a struct, and then those of the structs that it holds.
fn add(
    sections: &mut Vec<Section>,
    structs: &BTreeMap<String, ItemStruct>,
    (path, item): (Vec<String>, &ItemStruct),
    (defaults, is_default): (&Table, bool),
) {
    let (mut keys, mut inner) = (Vec::new(), Vec::new());
    for field in fields(structs, item) {
        let name = name_of(field);
        let default = defaults.get(&name);
        if let Some((holder, item)) = held(structs, &field.ty) {
            let mut path = path.clone();
            path.push(name.clone());
            if holder == Holder::Map {
                path.push(if name == "virtual" { PREFIX } else { NAME }.to_owned());
            }
            let table = default.and_then(Value::as_table).cloned().unwrap_or_default();
            inner.push((path, item, table, is_default && holder == Holder::Itself));
            continue;
        }
        let mut paragraphs = paragraphs(&field.attrs);
        let example = paragraphs.pop_if(|last| last.starts_with(EXAMPLE));
        let example = example.map(|text| text[EXAMPLE.len()..].trim_matches(['`', '.']).to_owned());
        let key = [&path[..], std::slice::from_ref(&name)].concat().join(".");
        let value = match (is_chosen(&key), default, example) {
            (true, ..) => "\"auto\"".to_owned(),
            (false, Some(value), _) => value.to_string(),
            (false, None, Some(example)) => example,
            (false, None, None) => panic!("`{key}` has neither a default nor an example"),
        };
        keys.push(Key { name, paragraphs, value, has_default: default.is_some() });
    }
    sections.push(Section { path, paragraphs: paragraphs(&item.attrs), is_default, keys });
    for (path, item, mut defaults, is_default) in inner {
        if path == ["mounts", NAME] {
            let mount: MountOptions = toml::from_str("url = '/srv/zarr'").unwrap();
            defaults = Table::try_from(&mount).unwrap();
            // It has to be given.
            defaults.remove("url");
        }
        add(sections, structs, (path, item), (&defaults, is_default));
    }
}

/// Whether the server chooses the value by default.
fn is_chosen(key: &str) -> bool {
    key == "server.max_memory" || Config::default().budgets().iter().any(|(budget, _)| budget == key)
}

/// All sections, those at the root first.
fn sections() -> Vec<Section> {
    let (structs, mut sections) = (structs(), Vec::new());
    let defaults = Table::try_from(Config::default()).unwrap();
    add(&mut sections, &structs, (Vec::new(), &structs["Config"]), (&defaults, true));
    sections
}

/// Paragraphs as comments of TOML.
fn comment(text: &mut String, paragraphs: &[String]) {
    for (number, paragraph) in paragraphs.iter().enumerate() {
        if number > 0 {
            text.push_str("#\n");
        }
        for entry in paragraph.lines() {
            let mut line = "#".to_owned();
            for word in entry.split_whitespace() {
                if line.chars().count() + 1 + word.chars().count() > WIDTH {
                    writeln!(text, "{line}").unwrap();
                    line = if entry.starts_with("* ") { "#  ".to_owned() } else { "#".to_owned() };
                }
                line.push(' ');
                line.push_str(word);
            }
            writeln!(text, "{line}").unwrap();
        }
    }
}

/// `config/default.toml`.
fn default_file(sections: &[Section]) -> String {
    let mut text = String::new();
    for Section { path, paragraphs, is_default, keys } in sections {
        if !path.is_empty() {
            text.push('\n');
        }
        comment(&mut text, paragraphs);
        if !path.is_empty() {
            let sign = if *is_default { "" } else { "# " };
            writeln!(text, "{sign}[{}]", path.join(".")).unwrap();
        }
        for (number, Key { name, paragraphs, value, has_default }) in keys.iter().enumerate() {
            if number > 0 || path.is_empty() {
                text.push('\n');
            }
            comment(&mut text, paragraphs);
            let sign = if *is_default && *has_default { "" } else { "# " };
            writeln!(text, "{sign}{name} = {value}").unwrap();
        }
    }
    text
}

/// The reference page.
fn reference(sections: &[Section]) -> String {
    let mut text = "# Configuration reference\n\n".to_owned();
    text.push_str("<!-- Generated by tests/it/settings.rs: UPDATE=1 cargo test --test it settings -->\n");
    for Section { path, paragraphs, keys, .. } in sections {
        if !path.is_empty() {
            write!(text, "\n## `[{}]`\n", path.join(".")).unwrap();
        }
        for paragraph in paragraphs {
            write!(text, "\n{paragraph}\n").unwrap();
        }
        for Key { name, paragraphs, value, has_default } in keys {
            let path = [&path[..], std::slice::from_ref(name)].concat();
            write!(text, "\n### `{}`\n", path.join(".")).unwrap();
            for paragraph in paragraphs {
                write!(text, "\n{paragraph}\n").unwrap();
            }
            let word = if *has_default { "Default" } else { "Example" };
            let variable = path.join("__").to_ascii_uppercase();
            write!(text, "\n{word}: `{value}` · Variable: `ZARRD__{variable}`\n").unwrap();
        }
    }
    text
}

#[test]
fn default_toml_and_the_reference_page_are_generated_from_the_options() {
    let (root, sections) = (Path::new(env!("CARGO_MANIFEST_DIR")), sections());
    for (file, generated) in [
        ("config/default.toml", default_file(&sections)),
        ("docs/src/configuration-reference.md", reference(&sections)),
    ] {
        let path = root.join(file);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, generated).unwrap();
            continue;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == generated, "{file} is not what the options say; run the test with UPDATE=1");
    }
}

#[test]
fn every_section_of_the_configuration_is_documented() {
    let sections = sections();
    for section in
        ["server.tls", "http.cors", "access.tokens.NAME", "cache", "mounts.NAME", "mounts.NAME.options"]
    {
        assert!(sections.iter().any(|found| found.path.join(".") == section), "{section}");
    }
    let keys: usize = sections.iter().map(|section| section.keys.len()).sum();
    assert!(keys > 100, "only {keys} keys were found");
}
