//! The locations of virtual chunks: URLs, of which Icechunk decodes the path whatever the scheme is.

use percent_encoding::percent_decode_str;

use crate::store::references::{ReferenceError, RefusedReference};

/// A location as references have it: only the URLs of web servers are escaped there.
///
/// # Errors
/// [`ReferenceError`] for a query or a fragment, which Icechunk leaves out, and for a name that is not UTF-8.
pub(super) fn reference_url(location: String) -> Result<String, ReferenceError> {
    let Some((scheme, _)) = location.split_once("://") else { return Ok(location) };
    if matches!(scheme, "http" | "https") {
        return Ok(location);
    }
    if location.contains(['?', '#']) {
        return Err(RefusedReference::Query.of(&location));
    }
    match percent_decode_str(&location).decode_utf8() {
        Ok(url) => Ok(url.into_owned()),
        Err(_invalid) => Err(RefusedReference::Escape.of(&location)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_and_keys_are_decoded_once() {
        for (location, url) in [
            ("s3://bucket/a%20b/%C3%A9.bin", "s3://bucket/a b/é.bin"),
            ("s3://bucket/a b/é.bin", "s3://bucket/a b/é.bin"),
            ("s3://bucket/w%2520y.bin", "s3://bucket/w%20y.bin"),
            ("file:///data/p%20q.bin", "file:///data/p q.bin"),
            ("gs://bucket/100%", "gs://bucket/100%"),
            ("https://host/a%20b", "https://host/a%20b"),
        ] {
            assert_eq!(reference_url(location.to_owned()).unwrap(), url);
        }
        for location in ["s3://bucket/a?b", "file:///a#b", "s3://bucket/%FF"] {
            assert!(reference_url(location.to_owned()).is_err(), "{location}");
        }
    }
}
