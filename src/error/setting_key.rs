//! [`setting_key`]: keys of settings as they are written in TOML.

use std::borrow::Cow;

/// The key of a setting, from the root, with dots: `mounts."a.zarr".writable`. A part is quoted where TOML takes it only so.
#[must_use]
pub fn setting_key<'a>(path: impl IntoIterator<Item = &'a str>) -> String {
    path.into_iter().map(toml_key).collect::<Vec<_>>().join(".")
}

/// One key of TOML, quoted unless it has only letters, digits, `-` and `_`.
#[must_use]
pub fn toml_key(key: &str) -> Cow<'_, str> {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !key.is_empty() && key.bytes().all(is_bare) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(format!("{key:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_quoted_where_toml_takes_it_only_so() {
        for (path, key) in [
            (["mounts", "lab-1_b", "url"], "mounts.lab-1_b.url"),
            (["mounts", "rw.zarr", "url"], "mounts.\"rw.zarr\".url"),
            (["mounts", "~", "url"], "mounts.\"~\".url"),
            (["mounts", "s3://b/p/", "url"], "mounts.\"s3://b/p/\".url"),
            (["mounts", "", "url"], "mounts.\"\".url"),
        ] {
            assert_eq!(setting_key(path), key);
        }
    }
}
