//! HTTP clients, each ready to speak TLS: an explicit installation is easily missed where another test has done it.

use reqwest::{Client, ClientBuilder, Error, Response};

/// A client that is still to be configured.
pub fn builder() -> ClientBuilder {
    // The first caller installs it for all.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}

/// A client as it comes.
pub fn client() -> Client {
    builder().build().unwrap()
}

/// The answer to one GET of a client of its own.
pub async fn get(url: impl reqwest::IntoUrl) -> Result<Response, Error> {
    client().get(url).send().await
}
