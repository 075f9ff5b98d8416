//! HTTP clients, each ready to speak TLS: to install what it takes is easily forgotten where another test has done so.

use reqwest::{Client, ClientBuilder, Error, Response};

/// A client that is yet to be told how it behaves.
pub fn builder() -> ClientBuilder {
    // Whoever comes first installs it for all.
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
