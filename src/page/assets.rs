//! The files that pages load: one table, compiled into the program and served without their comments.

use std::sync::LazyLock;

use crate::store::Version;

/// A file.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub text: String,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($name:literal: $media_type:expr,)*) => {
        vec![$(Asset {
            name: $name,
            media_type: $media_type,
            text: without_comments(include_str!(concat!("assets/", $name))),
        },)*]
    };
}

/// All files.
pub static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    assets! {
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "colors.js": SCRIPT,
    "decode.js": SCRIPT,
    "element.js": SCRIPT,
    "fields.js": SCRIPT,
    "histogram.js": SCRIPT,
    "labels.js": SCRIPT,
    "picture.js": SCRIPT,
    "plot.js": SCRIPT,
    "scale-bar.js": SCRIPT,
    "source.js": SCRIPT,
    "table.js": SCRIPT,
    "vectors.js": SCRIPT,
    "viewer.js": SCRIPT,
    }
});

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

static STYLE: LazyLock<String> = LazyLock::new(|| without_comments(include_str!("assets/style.css")));

/// The style sheet, which is part of every page.
#[must_use]
pub fn style() -> &'static str {
    STYLE.as_str()
}

/// A tag of the content of all files, which is part of their URLs.
pub static TAG: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<&str> = ASSETS.iter().map(|asset| asset.text.as_str()).collect();
    Version::from_own_text(all.concat().as_bytes()).tag().chars().take(12).collect()
});

/// The file of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_page_are_small_and_name_no_other_origin() {
        let mut all = 0;
        let files = ASSETS.iter().map(|asset| (asset.name, asset.text.as_str()));
        for (name, text) in files.chain([("style.css", style())]) {
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
}
