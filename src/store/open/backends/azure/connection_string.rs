//! [`ConnectionString`]: the account, the endpoint and the credentials of `AZURE_STORAGE_CONNECTION_STRING`, which the tools of
//! Azure read: `name=value` pairs with `;` between them. No error repeats any of it, because it holds secrets.

use crate::store::Secret;
use crate::store::open::endpoint::endpoint_error;
use crate::store::open::error::OpenError;

/// The variable with the connection string.
const VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";
/// What names an endpoint that is not one.
const ORIGIN: &str = "the environment (`AZURE_STORAGE_CONNECTION_STRING`)";
/// The domain of the provider's own servers.
const OWN_SUFFIX: &str = "core.windows.net";
/// What `UseDevelopmentStorage=true` means: the account, the public key and the address of the provider's emulator.
const EMULATOR: &str = "AccountName=devstoreaccount1;\
    AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;\
    BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";

/// What a connection string says of blobs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionString {
    /// The storage account.
    pub(super) account: String,
    /// The key of the account.
    pub(super) key: Option<Secret>,
    /// A shared access signature.
    pub(super) sas_token: Option<Secret>,
    /// The URL of blobs, if it is not the provider's own.
    pub(super) endpoint: Option<String>,
}

impl ConnectionString {
    /// That of the process, if it has one.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(super) fn of_process() -> Result<Option<Self>, OpenError> {
        #[expect(clippy::disallowed_methods, reason = "the chain is that of the provider's tools")]
        let text = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
        text.as_deref().map(Self::parse).transpose()
    }

    /// Parses a connection string.
    ///
    /// # Errors
    /// [`OpenError::Credentials`] if it names no account, [`OpenError::Endpoint`] if what it names as one is none.
    pub(super) fn parse(text: &str) -> Result<Self, OpenError> {
        let pairs: Vec<(&str, &str)> =
            text.split(';').filter_map(|pair| pair.trim().split_once('=')).collect();
        let value = |wanted: &str| {
            let found = pairs.iter().find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        if value("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self::parse(EMULATOR);
        }
        let written = value("BlobEndpoint");
        if let Some(reason) = written.and_then(endpoint_error) {
            return Err(OpenError::Endpoint { origin: ORIGIN, reason });
        }
        let Some(account) = value("AccountName").or_else(|| written.and_then(account_of)) else {
            return Err(OpenError::Credentials(format!("`{VARIABLE}` names no `AccountName`")));
        };
        let protocol = value("DefaultEndpointsProtocol").unwrap_or("https");
        let suffix = value("EndpointSuffix").unwrap_or(OWN_SUFFIX);
        let is_own = protocol.eq_ignore_ascii_case("https") && suffix.eq_ignore_ascii_case(OWN_SUFFIX);
        let made = (!is_own).then(|| format!("{protocol}://{account}.blob.{suffix}"));
        if let Some(reason) = made.as_deref().and_then(endpoint_error) {
            return Err(OpenError::Endpoint { origin: ORIGIN, reason });
        }
        let own = format!("https://{account}.blob.{OWN_SUFFIX}");
        let written = written.map(|url| url.trim_end_matches('/').to_owned());
        let secret = |name| value(name).map(Secret::new);
        Ok(Self {
            account: account.to_owned(),
            key: secret("AccountKey"),
            sas_token: secret("SharedAccessSignature"),
            endpoint: written.or(made).filter(|endpoint| *endpoint != own),
        })
    }
}

/// The account in the host of a URL of blobs.
fn account_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split_once(".blob.").map(|(account, _)| account).filter(|account| !account.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, Option<String>, Option<String>) {
        let ConnectionString { account, key, sas_token, endpoint } = ConnectionString::parse(text).unwrap();
        let text = |secret: Option<Secret>| secret.map(|secret| secret.expose().to_owned());
        (account, text(key), text(sas_token), endpoint)
    }

    #[test]
    fn a_connection_string_names_account_endpoint_and_credentials() {
        let some = |text: &str| Some(text.to_owned());
        for (text, account, key, sas, endpoint) in [
            (
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=a2V5==;EndpointSuffix=core.windows.net",
                "a",
                some("a2V5=="),
                None,
                None,
            ),
            (
                "accountname=a; AccountKey=k; EndpointSuffix=core.chinacloudapi.cn;",
                "a",
                some("k"),
                None,
                some("https://a.blob.core.chinacloudapi.cn"),
            ),
            (
                "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x%3D",
                "a",
                None,
                some("sv=1&sig=x%3D"),
                None,
            ),
            (
                "AccountName=dev;AccountKey=k;BlobEndpoint=http://127.0.0.1:10000/dev/;QueueEndpoint=http://x/dev",
                "dev",
                some("k"),
                None,
                some("http://127.0.0.1:10000/dev"),
            ),
            (
                "DefaultEndpointsProtocol=http;AccountName=a",
                "a",
                None,
                None,
                some("http://a.blob.core.windows.net"),
            ),
        ] {
            assert_eq!(parsed(text), (account.to_owned(), key, sas, endpoint), "{text}");
        }
        let (account, key, _, endpoint) = parsed("UseDevelopmentStorage=true");
        assert_eq!(account, "devstoreaccount1");
        assert_eq!(endpoint, some("http://127.0.0.1:10000/devstoreaccount1"));
        assert!(key.is_some());
    }

    #[test]
    fn a_connection_string_without_an_account_or_with_a_bad_endpoint_is_refused_without_repeating_it() {
        for (text, reason) in [
            ("SECRETX", "AccountName"),
            ("AccountKey=SECRETX", "AccountName"),
            ("BlobEndpoint=https://SECRETX;SharedAccessSignature=SECRETX", "AccountName"),
            ("AccountName=a;BlobEndpoint=https://u:SECRETX@host", "user name"),
            ("AccountName=a;BlobEndpoint=SECRETX", "must begin"),
            ("AccountName=a;DefaultEndpointsProtocol=ftp", "must begin"),
            ("AccountName=a b;EndpointSuffix=SECRETX", "is not a URL"),
        ] {
            let error = ConnectionString::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(VARIABLE), "{text}: {error}");
            assert!(!error.contains("SECRETX"), "{error}");
        }
    }
}
