//! The style sheet and the script of pages, compiled into the program and served without their comments.
//!
//! The script is all modules of `assets/` in one file: browsers would load them one after the other. Pages without a viewer load it
//! too, and it is cached for those with one. So no two modules may declare the same name, and a module may import from those before
//! it alone. As files they are ES modules, which tools can check.

use std::sync::LazyLock;

use crate::store::Version;

macro_rules! modules {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("assets/", $name))),)*]
    };
}

/// The modules: their names and texts, each after those that it imports from.
const MODULES: &[(&str, &str)] = modules![
    "api.js",
    "element.js",
    "decode.js",
    "fields.js",
    "colors.js",
    "plot.js",
    "scale-bar.js",
    "picture.js",
    "status-line.js",
    "source.js",
    "legend.js",
    "statistics.js",
    "coordinates.js",
    "page-url.js",
    "profiles.js",
    "readout.js",
    "plane-selection.js",
    "labels.js",
    "sliders.js",
    "keyboard.js",
    "channels.js",
    "color-mapping.js",
    "controls.js",
    "viewer.js",
    "image-tab.js",
    "table.js",
    "histogram.js",
    "vectors.js",
    "app.js",
];

static SCRIPT: LazyLock<String> = LazyLock::new(|| MODULES.iter().map(|(_, text)| bundled(text)).collect());

static STYLE: LazyLock<String> = LazyLock::new(|| without_comments(include_str!("assets/style.css")));

/// The script of all pages.
#[must_use]
pub fn script() -> &'static str {
    SCRIPT.as_str()
}

/// The style sheet, which is part of every page.
#[must_use]
pub fn style() -> &'static str {
    STYLE.as_str()
}

/// The version of the script, whose tag is part of its URL.
pub static SCRIPT_VERSION: LazyLock<Version> = LazyLock::new(|| Version::from_own_text(script().as_bytes()));

/// A module as a part of the script: what it imports and exports are names of the script.
fn bundled(module: &str) -> String {
    let code = without_comments(module);
    let lines = code.lines().filter(|line| !line.starts_with("import "));
    lines.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
}

/// A script or style sheet without the lines that are nothing but comments: they are a fifth of what browsers would load.
fn without_comments(text: &str) -> String {
    let mut is_within = false;
    let is_code = |line: &&str| {
        let line = line.trim();
        if is_within {
            is_within = !line.ends_with("*/");
            return false;
        }
        if line.starts_with("/*") && !line.contains("*/") {
            is_within = true;
            return false;
        }
        let is_comment = line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
        !is_comment && !line.is_empty()
    };
    text.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};
    use std::path::Path;

    use super::*;

    /// The names that a module declares outside of functions, with whether each is exported.
    fn declared(code: &str) -> Vec<(&str, bool)> {
        let of_line = |line| {
            let exported = str::strip_prefix(line, "export ");
            let line = exported.unwrap_or(line);
            let line = line.strip_prefix("async ").unwrap_or(line);
            let name =
                ["const ", "let ", "class ", "function "].iter().find_map(|word| line.strip_prefix(word))?;
            let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
            Some((&name[..end], exported.is_some()))
        };
        code.lines().filter_map(of_line).collect()
    }

    #[test]
    fn modules_import_what_those_before_them_export_and_declare_names_of_their_own() {
        let mut exports: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        let mut names = BTreeSet::new();
        for (module, text) in MODULES {
            assert!(!text.contains("await import("), "{module} loads a module that is part of the script");
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let (imported, file) =
                    line.strip_prefix("import { ").and_then(|line| line.split_once(" } from \"./")).unwrap();
                let exported = exports.get(file.strip_suffix("\";").unwrap()).unwrap();
                assert!(imported.split(", ").all(|name| exported.contains(name)), "{module}: {line}");
            }
            let declared = declared(text);
            for (name, _) in &declared {
                assert!(names.insert(*name), "{module} declares {name}, as another module does");
            }
            exports.insert(module, declared.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect());
            let exporting = text.lines().filter(|line| line.starts_with("export ")).count();
            assert_eq!(exporting, exports[module].len(), "{module} exports what it does not declare");
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/assets");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let scripts: BTreeSet<String> = files.filter(|name| name != "style.css").collect();
        assert_eq!(scripts, exports.keys().map(|name| (*name).to_owned()).collect());
    }

    #[test]
    fn script_and_style_sheet_are_small_and_name_no_other_origin() {
        let mut all = 0;
        for (name, text) in [("the script", script()), ("the style sheet", style())] {
            let encoded = crate::codec::ContentCoding::Gzip.encode(text.as_bytes()).unwrap();
            all += encoded.len();
            for other in ["http://", "https://", "//cdn", "eval(", "innerHTML", "localStorage.token"] {
                let is_namespace = text.contains("http://www.w3.org/2000/svg") && other == "http://";
                assert!(!text.contains(other) || is_namespace, "{name} has {other}");
            }
        }
        assert!(all <= 60_000, "{all} bytes, compressed");
    }

    #[test]
    fn the_style_sheet_ends_where_its_element_does() {
        assert!(!style().contains('<'));
    }

    #[test]
    fn only_lines_of_comments_are_left_out() {
        let text = "// a\nlet b = 1; // c\n\n  /** d */\n/**\n * e\n */\nconst f = /** @type {g} */ (h);\n/** @type {i} */ (j).k();\n";
        let code = "let b = 1; // c\nconst f = /** @type {g} */ (h);\n/** @type {i} */ (j).k();\n";
        assert_eq!(without_comments(text), code);
    }

    #[test]
    fn a_module_in_the_script_has_no_imports_and_exports() {
        let module = "// a\nimport { b } from \"./b.js\";\nexport const c = b;\nexport function d() {\n  return \"export e\";\n}\n";
        assert_eq!(bundled(module), "const c = b;\nfunction d() {\n  return \"export e\";\n}\n");
    }
}
