//! The query of an S3 request: its parameters, and the operation that they select.
//!
//! S3 distinguishes operations on one path by their parameters. One that is not implemented must be rejected: the response
//! would otherwise be a listing or a value. Parameters that name no operation (of signatures, or names of calls that some
//! SDKs add) are ignored.

use axum::http::Uri;
use percent_encoding::percent_decode_str;

use crate::error::{Classify, ErrorClass};

/// The parameters that name an unsupported operation.
const OTHER_OPERATIONS: [&str; 29] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metadataConfiguration",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "retention",
    "select",
    "session",
    "tagging",
    "torrent",
    "versions",
    "website",
];

/// Why a query is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum S3QueryError {
    /// The query has a bad escape, or escapes that are not UTF-8.
    #[error("the query is not percent-encoded UTF-8")]
    Encoding,
    /// A parameter is repeated.
    #[error("`{0}` is given more than once")]
    Twice(&'static str),
    /// The value of a parameter is invalid.
    #[error("`{name}` takes {takes}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The valid values.
        takes: &'static str,
    },
    /// The delimiter is not `/`.
    #[error("keys are grouped by the delimiter `/` alone")]
    Delimiter,
    /// The operation is not supported.
    #[error(
        "`?{0}` is not implemented; this server supports the operations of S3 that read, list and write values"
    )]
    Operation(&'static str),
}

impl Classify for S3QueryError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Encoding | Self::Twice(_) | Self::Value { .. } => ErrorClass::InvalidRequest,
            Self::Delimiter | Self::Operation(_) => ErrorClass::Unsupported,
        }
    }
}

/// The decoded parameters of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

/// The `prefix` parameter of a listing request.
///
/// # Errors
/// As for [`Query::of`].
pub(crate) fn listed(uri: &Uri) -> Result<String, S3QueryError> {
    Ok(Query::of(uri)?.value("prefix")?.unwrap_or_default().to_owned())
}

/// Whether the request is about an upload in parts. A query that cannot be decoded names none.
pub(crate) fn names_upload(uri: &Uri) -> bool {
    Query::decode(uri).is_ok_and(|query| query.has("uploads") || query.has("uploadId"))
}

impl Query {
    /// Decodes a query and rejects unsupported operations.
    pub(crate) fn of(uri: &Uri) -> Result<Self, S3QueryError> {
        let query = Self::decode(uri)?;
        match OTHER_OPERATIONS.into_iter().find(|operation| query.has(operation)) {
            Some(operation) => Err(S3QueryError::Operation(operation)),
            None => Ok(query),
        }
    }

    /// Rejects a parameter that names an operation which the path does not have.
    pub(crate) fn reject(&self, operations: &[&'static str]) -> Result<(), S3QueryError> {
        match operations.iter().find(|operation| self.has(operation)) {
            Some(operation) => Err(S3QueryError::Operation(operation)),
            None => Ok(()),
        }
    }

    /// Decodes a query.
    pub(crate) fn decode(uri: &Uri) -> Result<Self, S3QueryError> {
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// Whether a parameter is present, with or without a value.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    /// The value of a parameter; an empty one counts as absent.
    pub(crate) fn value(&self, name: &'static str) -> Result<Option<&str>, S3QueryError> {
        let mut values = self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(S3QueryError::Twice(name)),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }
}

/// Decodes one name or value, in which `+` is a space.
fn decode(text: &str) -> Result<String, S3QueryError> {
    let escapes = text.split('%').skip(1);
    let is_hex = |escape: &str| escape.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !escapes.into_iter().all(is_hex) {
        return Err(S3QueryError::Encoding);
    }
    let spaced = text.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(S3QueryError::Encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Result<Query, S3QueryError> {
        Query::of(&format!("/s3/m?{text}").parse().unwrap())
    }

    #[test]
    fn pairs_are_decoded_once() {
        let pairs =
            query("prefix=a+b%2Bc%2520&&location&x=1=2&empty=&X-Amz-Signature=f&x-id=GetObject").unwrap();
        assert_eq!(pairs.value("prefix"), Ok(Some("a b+c%20")));
        assert_eq!(
            (pairs.value("x"), pairs.value("empty"), pairs.value("none")),
            (Ok(Some("1=2")), Ok(None), Ok(None))
        );
        assert!(pairs.has("location") && !pairs.has("loc"));
        assert_eq!(query("a=1&a=1").unwrap().value("a"), Err(S3QueryError::Twice("a")));
        for bad in ["prefix=%ff", "prefix=%", "prefix=%z0", "prefix=%4", "%ff=1"] {
            assert_eq!(query(bad), Err(S3QueryError::Encoding), "{bad}");
        }
    }

    #[test]
    fn unsupported_operations_are_rejected() {
        for operation in OTHER_OPERATIONS {
            for text in [operation.to_owned(), format!("prefix=a&{operation}=1")] {
                assert_eq!(query(&text), Err(S3QueryError::Operation(operation)));
            }
        }
        assert!(query("aclx=1&prefix=acl").is_ok());
    }
}
