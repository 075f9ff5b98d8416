//! [`CheckedKeys`]: keys that can be sent. The client puts them into headers, and panics if a header cannot have them.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AwsCredential, AwsCredentialProvider};

/// Keys of a source, checked whenever it gives some.
#[derive(Debug)]
pub(super) struct CheckedKeys {
    source: AwsCredentialProvider,
    /// What the source is, in words.
    origin: &'static str,
}

/// Why keys are not used.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: the {part} has characters that no header can have")]
struct UnusableKeys {
    origin: &'static str,
    part: &'static str,
}

impl CheckedKeys {
    /// The keys that `source` gives.
    pub(super) fn new(source: AwsCredentialProvider, origin: &'static str) -> Self {
        Self { source, origin }
    }
}

#[async_trait]
impl CredentialProvider for CheckedKeys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let keys = self.source.get_credential().await?;
        match unusable_part(&keys.key_id, keys.token.as_deref()) {
            Some(part) => {
                let source = Box::new(UnusableKeys { origin: self.origin, part });
                Err(object_store::Error::Generic { store: "S3", source })
            }
            None => Ok(keys),
        }
    }
}

/// The part of keys that no header can have; `None` if there is none. The secret is in no header.
pub(super) fn unusable_part(id: &str, token: Option<&str>) -> Option<&'static str> {
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_visible(id) {
        return Some("access key id");
    }
    token.is_some_and(|token| !is_visible(token)).then_some("session token")
}

/// Whether a text can be a region, which is in headers and in names of hosts.
pub(super) fn is_region(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use object_store::StaticCredentialProvider;

    use super::*;

    async fn checked(key_id: &str, token: Option<&str>) -> Result<String, String> {
        let keys = AwsCredential {
            key_id: key_id.to_owned(),
            secret_key: "a secret".to_owned(),
            token: token.map(str::to_owned),
        };
        let source = Arc::new(StaticCredentialProvider::new(keys));
        let found = CheckedKeys::new(source, "the container").get_credential().await;
        found.map(|keys| keys.key_id.clone()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn keys_that_no_header_can_have_are_an_error_that_names_source_and_part() {
        assert_eq!(checked("AKIA", None).await.as_deref(), Ok("AKIA"));
        assert_eq!(checked("AKIA", Some("t/+=")).await.as_deref(), Ok("AKIA"));
        for (id, token, part) in [
            ("SECRETX\r\nx: y", None, "access key id"),
            ("SECRETX\u{e9}", None, "access key id"),
            ("AKIA", Some("SECRETX\n"), "session token"),
        ] {
            let error = checked(id, token).await.unwrap_err();
            assert!(error.contains(&format!("the container: the {part}")), "{error}");
            assert!(!error.contains("SECRETX"), "{error}");
        }
    }

    #[test]
    fn a_region_is_what_a_name_of_a_host_may_have_in_it() {
        for good in ["us-east-1", "auto", "my_region.1", ""] {
            assert!(is_region(good), "{good}");
        }
        for bad in ["eu\r\nx", "a b", "a/b", "host@", "\u{e9}"] {
            assert!(!is_region(bad), "{bad}");
        }
    }
}
