//! What a bucket says in the document of a refusal, in words for the operator: the code, and what to do about it.
//!
//! Codes are compared with those that are known, so that no text of a backend is passed on.

use std::error::Error;

/// The error of a response that says that the bucket is in another region.
#[derive(Debug, thiserror::Error)]
#[error("the bucket is in the region `{0}`")]
pub(super) struct OtherRegion(pub(super) String);

/// The codes of S3, GCS and Azure, and what they mean.
const CODES: [(&str, &str); 15] = [
    (
        "AccessDenied",
        "the credentials may not do this, or there are none: give keys in `options`, or take those of the provider's own tools with \
         `options.credentials = \"chain\"`; a bucket whose readers pay takes `options.requester_pays = true`",
    ),
    ("AllAccessDisabled", "the provider has disabled it"),
    ("AccountProblem", "the provider has disabled the account"),
    ("InvalidAccessKeyId", "it does not know the access key: check `options.access_key_id`, or the profile"),
    (
        "SignatureDoesNotMatch",
        "the secret key is not that of the access key: check `options.secret_access_key`, or the profile",
    ),
    ("ExpiredToken", "the session token has expired: get new credentials"),
    ("TokenRefreshRequired", "the session token has expired: get new credentials"),
    ("InvalidToken", "the session token is not valid: get new credentials"),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong by more than 15 minutes"),
    ("AuthorizationHeaderMalformed", "the requests are signed for another region: set `options.region`"),
    (
        "PermanentRedirect",
        "it is in another region, or at another endpoint: set `options.region` or `options.endpoint`",
    ),
    ("InvalidBucketName", "its name is not valid"),
    ("AuthenticationFailed", "the key of the account is wrong, or the clock of this machine"),
    ("AuthorizationPermissionMismatch", "the identity lacks a role for the data of the container"),
    ("PublicAccessNotPermitted", "the account needs credentials"),
];

/// The code in the document of an error, and what it means; `None` if it is not known.
pub(super) fn meaning(document: &str) -> Option<(&'static str, &'static str)> {
    let code = element(document, "Code")?;
    CODES.into_iter().find(|(known, _)| *known == code)
}

/// The region in which a document says that the bucket is.
pub(super) fn region(document: &str) -> Option<&str> {
    element(document, "Region").filter(|region| is_region(region))
}

/// Whether a text can be the name of a region.
pub(super) fn is_region(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The text of the first element with this name.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(text, _)| text)
}

/// The region that a failure names.
pub(super) fn other_region<'a>(
    mut causes: impl Iterator<Item = &'a (dyn Error + 'static)>,
) -> Option<&'a str> {
    causes.find_map(|cause| cause.downcast_ref::<OtherRegion>()).map(|OtherRegion(region)| region.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_codes_and_names_of_regions_are_passed_on() {
        let document =
            |code: &str| format!("<?xml?><Error><Code>{code}</Code><Message>secret-bucket</Message></Error>");
        for (code, _) in CODES {
            assert_eq!(meaning(&document(code)).map(|(code, _)| code), Some(code));
        }
        for odd in ["secret-bucket", "", "accessdenied"] {
            assert_eq!(meaning(&document(odd)), None);
        }
        assert_eq!(meaning("<html>"), None);
        assert_eq!(region("<Error><Region>eu-west-1</Region></Error>"), Some("eu-west-1"));
        for odd in ["<Region></Region>", "<Region>a b</Region>", "<Region>x", "<Region>http://x/</Region>"] {
            assert_eq!(region(odd), None, "{odd}");
        }
    }
}
