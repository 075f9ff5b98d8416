//! [`KeyService`]: the client that requests keys from the services of AWS, with the token of the container.

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use reqwest::header::AUTHORIZATION;

use super::container::ContainerToken;
use crate::store::object::Connector;

/// Sends requests for keys.
#[derive(Clone, Debug)]
pub(super) struct KeyService {
    connector: Connector,
    /// That of the container, if its service is the one.
    token: Option<ContainerToken>,
}

impl KeyService {
    /// Sends requests as they are, with this client.
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, token: None }
    }

    /// Sends requests with this token and no other.
    pub(super) fn with_token(self, token: ContainerToken) -> Self {
        Self { token: Some(token), ..self }
    }
}

impl HttpConnector for KeyService {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for KeyService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(token) = &self.token {
            let header = token.header().await;
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(value) = header.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))? {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        self.connector.call(request).await
    }
}
