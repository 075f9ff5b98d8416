//! object_store's own tests of a store, by name: those that its store over HTTP has to pass.

use anyhow::bail;
use async_trait::async_trait;
use http::{StatusCode, header};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, integration};

use crate::store;

/// Runs a test on the store behind a URL. It panics if that fails.
pub async fn run(test: &str, url: &str) -> anyhow::Result<()> {
    let store = store::object_store(url, ReqwestConnector::default())?;
    match test {
        "put_get_delete_list" => integration::put_get_delete_list(&store).await,
        "put_get_delete_list without pages" => {
            integration::put_get_delete_list(&store::object_store(url, WithoutPages)?).await;
        }
        "list_uses_directories_correctly" => integration::list_uses_directories_correctly(&store).await,
        "list_with_delimiter" => integration::list_with_delimiter(&store).await,
        "rename_and_copy" => integration::rename_and_copy(&store).await,
        "copy_if_not_exists" => integration::copy_if_not_exists(&store).await,
        "get_opts" => integration::get_opts(&store).await,
        _ => bail!("there is no test {test}"),
    }
    Ok(())
}

/// Connects to a server as if it had no pages for people to read: no listing as HTML.
#[derive(Debug)]
struct WithoutPages;

impl HttpConnector for WithoutPages {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Service(HttpClient);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut response = self.0.execute(request).await?;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        if content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html")) {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        Ok(response)
    }
}
