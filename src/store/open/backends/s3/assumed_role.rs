//! [`AssumedRole`]: temporary keys of a role, which the token service (STS) gives to those who may assume it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AwsAuthorizer, AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpRequest};
use quick_xml::Reader;
use quick_xml::events::Event;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::Serializer;

/// How long keys are valid.
const LIFETIME: Duration = Duration::from_hours(1);
/// The age at which keys are replaced.
const RENEWAL_AGE: Duration = Duration::from_mins(50);
/// The age up to which keys are used that could not be replaced.
const MAX_AGE: Duration = Duration::from_mins(59);
/// The name of sessions in the logs of AWS.
const SESSION: &str = "zarrd";

/// Keys of a role, renewed before they expire.
#[derive(Debug)]
pub(super) struct AssumedRole {
    source: AwsCredentialProvider,
    client: HttpClient,
    endpoint: String,
    region: String,
    /// The form that asks for the keys.
    form: String,
    /// The keys, and when they were asked for.
    keys: Mutex<Option<(Arc<AwsCredential>, Instant)>>,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
enum RoleError {
    #[error("the token service answered {0}: the role cannot be assumed")]
    Refused(u16),
    #[error("the token service sent no keys")]
    Incomplete,
    #[error("the address of the token service is not valid")]
    Address,
}

impl AssumedRole {
    /// The role with this name, which `source` signs for.
    pub(super) fn new(
        source: AwsCredentialProvider,
        client: HttpClient,
        (endpoint, region): (Option<&str>, &str),
        role: &str,
        (session, external_id): (Option<&str>, Option<&str>),
    ) -> Self {
        let mut form = Serializer::new(String::new());
        form.append_pair("Action", "AssumeRole").append_pair("Version", "2011-06-15");
        form.append_pair("RoleArn", role).append_pair("RoleSessionName", session.unwrap_or(SESSION));
        form.append_pair("DurationSeconds", &LIFETIME.as_secs().to_string());
        if let Some(external_id) = external_id {
            form.append_pair("ExternalId", external_id);
        }
        let regional = || format!("https://sts.{region}.amazonaws.com");
        Self {
            source,
            client,
            endpoint: endpoint.map_or_else(regional, str::to_owned),
            region: region.to_owned(),
            form: form.finish(),
            keys: Mutex::default(),
        }
    }

    async fn assume(&self) -> Result<AwsCredential, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = HttpRequest::new(self.form.clone().into());
        *request.method_mut() = Method::POST;
        // The signature needs an absolute URL.
        let address = Url::parse(&self.endpoint).map_err(|_invalid| RoleError::Address)?;
        *request.uri_mut() = address.as_str().parse().map_err(|_invalid| RoleError::Address)?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, form);
        let source = self.source.get_credential().await?;
        AwsAuthorizer::new(&source, "sts", &self.region).try_authorize(&mut request, None)?;
        let response = self.client.execute(request).await?;
        let status = response.status();
        let body = response.into_body().bytes().await?;
        if !status.is_success() {
            return Err(RoleError::Refused(status.as_u16()).into());
        }
        Ok(keys_of(&body).ok_or(RoleError::Incomplete)?)
    }
}

#[async_trait]
impl CredentialProvider for AssumedRole {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        // Held meanwhile, so that the keys are asked for once.
        let mut keys = self.keys.lock().await;
        let age = keys.as_ref().map(|(_, asked)| asked.elapsed());
        let known =
            |limit: Duration| keys.as_ref().filter(|_| age < Some(limit)).map(|(keys, _)| Arc::clone(keys));
        if let Some(known) = known(RENEWAL_AGE) {
            return Ok(known);
        }
        let asked = Instant::now();
        match self.assume().await {
            Ok(new) => {
                let new = Arc::new(new);
                *keys = Some((Arc::clone(&new), asked));
                Ok(new)
            }
            Err(source) => known(MAX_AGE).ok_or(object_store::Error::Generic { store: "S3", source }),
        }
    }
}

/// The keys in an answer of the token service.
fn keys_of(xml: &[u8]) -> Option<AwsCredential> {
    let mut reader = Reader::from_reader(xml);
    let (mut name, mut texts) = (Vec::new(), [const { String::new() }; 3]);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => name = start.local_name().as_ref().to_vec(),
            Event::End(_) => name.clear(),
            Event::Text(text) => {
                let at = match name.as_slice() {
                    b"AccessKeyId" => 0,
                    b"SecretAccessKey" => 1,
                    b"SessionToken" => 2,
                    _ => continue,
                };
                // Keys are written in characters of Base64, which need no escaping.
                texts[at].push_str(std::str::from_utf8(&text).ok()?.trim());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let [key_id, secret_key, token] = texts;
    // A token with other characters cannot be sent.
    let is_key = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_complete = [&key_id, &secret_key, &token].into_iter().all(is_key);
    is_complete.then_some(AwsCredential { key_id, secret_key, token: Some(token) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_answer_of_the_token_service() {
        let answer = "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult>\
            <AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser><Credentials>\n<AccessKeyId>ASIA</AccessKeyId>\
            <SecretAccessKey>s/+=</SecretAccessKey><SessionToken>t\n</SessionToken>\
            <Expiration>2026-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
        let keys = keys_of(answer.as_bytes()).unwrap();
        assert_eq!((&*keys.key_id, &*keys.secret_key, keys.token.as_deref()), ("ASIA", "s/+=", Some("t")));
        for broken in
            ["", "<a", "<AccessKeyId>A</AccessKeyId>", "<AccessKeyId>A</AccessKeyId><SecretAccessKey/>"]
        {
            assert!(keys_of(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
