//! The files that pages load: one table, compiled into the program and served as they are written.

use std::sync::LazyLock;

use crate::store::Version;

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($name:literal: $media_type:expr,)*) => {
        &[$(Asset { name: $name, media_type: $media_type, bytes: include_bytes!(concat!("assets/", $name)) },)*]
    };
}

/// All files.
pub static ASSETS: &[Asset] = assets! {
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "colors.js": SCRIPT,
    "decode.js": SCRIPT,
    "element.js": SCRIPT,
    "histogram.js": SCRIPT,
    "labels.js": SCRIPT,
    "picture.js": SCRIPT,
    "plot.js": SCRIPT,
    "scale-bar.js": SCRIPT,
    "source.js": SCRIPT,
    "style.css": "text/css; charset=utf-8",
    "table.js": SCRIPT,
    "vectors.js": SCRIPT,
    "viewer.js": SCRIPT,
};

/// A tag of the content of all files, which is part of their URLs.
pub static TAG: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<&[u8]> = ASSETS.iter().map(|asset| asset.bytes).collect();
    Version::from_own_text(&all.concat()).tag().chars().take(12).collect()
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
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let encoded = crate::codec::ContentCoding::Gzip.encode(asset.bytes).unwrap();
            all += encoded.len();
            for other in ["http://", "https://", "//cdn", "eval(", "innerHTML", "localStorage.token"] {
                let is_namespace = text.contains("http://www.w3.org/2000/svg") && other == "http://";
                assert!(!text.contains(other) || is_namespace, "{} has {other}", asset.name);
            }
        }
        assert!(all <= 60_000, "{all} bytes, compressed");
    }
}
