//! Whether the machine's metadata service has credentials. A machine without a role has the service, too, and so have the machines
//! of other providers.

use std::time::Duration;

use reqwest::{Client, Method, Response};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::store::object::Connector;
use crate::store::{RemoteOptions, Shared};

/// The address that all providers use.
const ADDRESS: &str = "http://169.254.169.254";
/// How long all requests together may take. The service is on the same host.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The most bytes of an answer with keys or names that are read.
pub(super) const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Whether the service of AWS, at this address or the usual one, has a role for the machine.
pub(super) fn has_aws_role(address: Option<&str>) -> bool {
    let address = address.unwrap_or(ADDRESS).trim_end_matches('/').to_owned();
    has_credentials(async move |client| {
        let token = client
            .request(Method::PUT, format!("{address}/latest/api/token"))
            .header("x-aws-ec2-metadata-token-ttl-seconds", "60");
        let token = text_of(token.send().await?.error_for_status()?).await?;
        let roles = client
            .get(format!("{address}/latest/meta-data/iam/security-credentials/"))
            .header("x-aws-ec2-metadata-token", token.trim());
        Ok(!text_of(roles.send().await?.error_for_status()?).await?.trim().is_empty())
    })
}

/// Whether the service of Google has an account for the machine.
pub(super) fn has_google_account() -> bool {
    has_credentials(async |client| {
        let url = format!("{ADDRESS}/computeMetadata/v1/instance/service-accounts/default/email");
        Ok(client.get(url).header("metadata-flavor", "Google").send().await?.status().is_success())
    })
}

/// Whether the service of Azure has an identity for the machine.
pub(super) fn has_azure_identity() -> bool {
    has_credentials(async |client| {
        let resource = "api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F";
        let url = format!("{ADDRESS}/metadata/identity/oauth2/token?{resource}");
        Ok(client.get(url).header("metadata", "true").send().await?.status().is_success())
    })
}

/// Runs an exchange on a thread of its own, because stores are opened without waiting for anything else. A failure means that
/// there are none.
fn has_credentials<F>(exchange: impl FnOnce(Client) -> F + Send + 'static) -> bool
where
    F: Future<Output = Result<bool, reqwest::Error>>,
{
    let run = move || -> Result<bool, Shared> {
        let client = Connector::new(false, &RemoteOptions::default().timeouts())?.client().clone();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(shared)?;
        let found = runtime.block_on(async { timeout(TIMEOUT, exchange(client)).await });
        found.map_err(shared)?.map_err(shared)
    };
    std::thread::spawn(run).join().is_ok_and(|found| found.unwrap_or(false))
}

/// The text of an answer; empty if it is too long or not one.
async fn text_of(mut answer: Response) -> Result<String, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
            tracing::warn!(
                "the metadata service answered with more than {MAX_ANSWER_BYTES} bytes: it is not used"
            );
            return Ok(String::new());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

fn shared(error: impl std::error::Error + Send + Sync + 'static) -> Shared {
    std::sync::Arc::new(error)
}
