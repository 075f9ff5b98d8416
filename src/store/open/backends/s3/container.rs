//! [`ContainerKeys`]: where a container gets its keys, and the token that it identifies itself with.

use std::fs::File;
use std::io::Read as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use reqwest::header::HeaderValue;
use url::{Host, Url};

use super::variables::AwsVariables;
use crate::store::open::endpoint::http_url_error;
use crate::store::open::error::OpenError;

/// What a path is appended to.
const AGENT: &str = "http://169.254.170.2";
/// The agents of ECS and EKS, which speak unencrypted HTTP on the same host.
const AGENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(169, 254, 170, 2), Ipv4Addr::new(169, 254, 170, 23)];
/// The agent of EKS.
const AGENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);

/// Variables.
const PATH: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL_URL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// The most bytes of a file that are read as a token.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// The service that has the keys of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerKeys {
    /// The URL of the keys.
    pub(super) url: String,
    /// What is sent to it.
    pub(super) token: ContainerToken,
}

/// The token that a container identifies itself with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContainerToken {
    /// The service wants none.
    None,
    /// The value of the header `Authorization`.
    Value(HeaderValue),
    /// The path of a file with that value, which others replace.
    File(String),
}

/// Why the token of a container cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContainerTokenError {
    #[error("the file that `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` names cannot be read")]
    File(#[source] std::io::Error),
    #[error(
        "the file that `AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE` names has characters that no header can have"
    )]
    Characters,
}

impl ContainerKeys {
    /// What the environment names; `None` if it names nothing.
    ///
    /// # Errors
    /// [`OpenError::Credentials`] if the URL is not one that keys may be requested from, or the token cannot be sent.
    pub(super) fn find(environment: &AwsVariables) -> Result<Option<Self>, OpenError> {
        let (variable, url) = match (environment.get(PATH), environment.get(FULL_URL)) {
            (Some(path), _) => (PATH, format!("{AGENT}{path}")),
            (None, Some(url)) => (FULL_URL, url),
            (None, None) => return Ok(None),
        };
        if let Some(reason) = url_error(&url) {
            return Err(OpenError::Credentials(format!("`{variable}` {reason}")));
        }
        let token = match (environment.get(TOKEN_FILE), environment.get(TOKEN)) {
            (Some(path), _) => ContainerToken::File(path),
            (None, Some(token)) => {
                let Some(value) = secret_header(&token) else {
                    let reason = format!("`{TOKEN}` has characters that no header can have");
                    return Err(OpenError::Credentials(reason));
                };
                ContainerToken::Value(value)
            }
            (None, None) => ContainerToken::None,
        };
        Ok(Some(Self { url, token }))
    }
}

impl ContainerToken {
    /// The value of the header `Authorization`; `None` if there is no such header.
    ///
    /// # Errors
    /// [`ContainerTokenError`] if a file does not have it.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, ContainerTokenError> {
        let path = match self {
            Self::None => return Ok(None),
            Self::Value(value) => return Ok(Some(value.clone())),
            Self::File(path) => path.clone(),
        };
        #[expect(clippy::disallowed_methods, reason = "one short file, each time that keys expire")]
        let read = tokio::task::spawn_blocking(move || token_of(&path)).await;
        let text = read.map_err(std::io::Error::other).flatten().map_err(ContainerTokenError::File)?;
        secret_header(text.trim_end()).map(Some).ok_or(ContainerTokenError::Characters)
    }
}

/// The text of a file, up to a limit.
fn token_of(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TOKEN_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The value of a header that no log shows; `None` if the text cannot be one.
fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Why keys are not requested from a URL: unencrypted, they go no further than this host and its agents.
fn url_error(text: &str) -> Option<&'static str> {
    if let Some(reason) = http_url_error(text) {
        return Some(reason);
    }
    let Ok(url) = Url::parse(text) else {
        return Some("is not a URL");
    };
    let is_trusted = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback() || AGENTS.contains(&address),
        Some(Host::Ipv6(address)) => address.is_loopback() || address == AGENT_V6,
        None => false,
    };
    let is_encrypted = url.scheme() == "https";
    (!is_trusted && !is_encrypted)
        .then_some("must be `https://` or lead to this host, 169.254.170.2, 169.254.170.23 or fd00:ec2::23")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &'static [(&'static str, &'static str)]) -> Result<Option<ContainerKeys>, String> {
        let get = move |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ContainerKeys::find(&AwsVariables(Box::new(get))).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_a_container_need_no_token_or_one_of_a_variable_or_a_file() {
        let local = "http://127.0.0.1:8/keys";
        assert_eq!(find(&[]), Ok(None));
        let found = find(&[(FULL_URL, "http://127.0.0.1:8/keys")]).unwrap().unwrap();
        assert_eq!(found, ContainerKeys { url: local.to_owned(), token: ContainerToken::None });
        let found =
            find(&[(FULL_URL, "http://127.0.0.1:8/keys"), (TOKEN, "Bearer SECRETX")]).unwrap().unwrap();
        assert_eq!(found.token, ContainerToken::Value(HeaderValue::from_static("Bearer SECRETX")));
        assert!(!format!("{found:?}").contains("SECRETX"));
        let both = find(&[(PATH, "/v2/keys"), (FULL_URL, "http://x"), (TOKEN_FILE, "/t"), (TOKEN, "t")]);
        let found = both.unwrap().unwrap();
        assert_eq!(
            (&*found.url, found.token),
            ("http://169.254.170.2/v2/keys", ContainerToken::File("/t".into()))
        );
    }

    #[test]
    fn keys_of_a_container_come_from_this_host_its_agents_or_encrypted() {
        for good in [
            "https://host.example/keys",
            "http://localhost/keys",
            "http://[::1]:80/keys",
            "http://169.254.170.2/keys?id=1",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
        ] {
            assert_eq!(url_error(good), None, "{good}");
        }
        for bad in [
            "http://host.example/keys",
            "http://169.254.169.254/",
            "http://10.0.0.1",
            "/keys",
            "ftp://localhost",
        ] {
            assert!(url_error(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_names_the_variable_and_no_secret() {
        for (found, name) in [
            (find(&[(FULL_URL, "http://host.example/SECRETX")]), FULL_URL),
            (find(&[(FULL_URL, "http://u:SECRETX@localhost")]), FULL_URL),
            (find(&[(PATH, "@SECRETX.example/keys")]), PATH),
            (find(&[(PATH, ".SECRETX.example/keys")]), PATH),
            (find(&[(FULL_URL, "https://h"), (TOKEN, "SECRETX\nx: y")]), TOKEN),
        ] {
            let error = found.unwrap_err();
            assert!(error.contains(&format!("`{name}`")) && !error.contains("SECRETX"), "{error}");
        }
    }

    #[tokio::test]
    async fn the_token_of_a_file_is_read_again_and_checked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let token = ContainerToken::File(file.path().to_str().unwrap().to_owned());
        for (text, header) in [("first\n", Some("first")), ("second", Some("second")), ("a\nb", None)] {
            std::fs::write(file.path(), text).unwrap();
            let found = token.header().await.ok().flatten();
            assert_eq!(found.as_ref().and_then(|value| value.to_str().ok()), header);
        }
        let missing = ContainerToken::File("/no/such/file".to_owned());
        assert!(missing.header().await.unwrap_err().to_string().contains(TOKEN_FILE));
    }
}
