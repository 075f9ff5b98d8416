//! Opens a directory of a web server, with `WebDAV` or without: `http(s)://host/path`.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::http::HttpBuilder;
use url::Url;

use crate::store::object::Connector;
use crate::store::open::backend::Backend;
use crate::store::open::bucket::{object_options, throttled};
use crate::store::open::error::OpenError;
use crate::store::open::url::parse_prefix;
use crate::store::options::Section as _;
use crate::store::{HostReach, ObjectBackend, RemoteOptions, SharedStore, StoreKind, StoreOptions};

pub(super) const BACKEND: Backend = Backend {
    kind: StoreKind::HTTP,
    schemes: &["http", "https"],
    options: &[RemoteOptions::KEYS],
    can_sign: false,
    locate: None,
    open,
};

/// The client gets the host alone, and the path is a prefix of keys as in a bucket: listings (`PROPFIND`) name
/// everything by its full path.
fn open(url: &str, options: &StoreOptions) -> Result<SharedStore, OpenError> {
    let Ok(mut url) = Url::parse(url) else {
        return Err(OpenError::InvalidUrl("it does not parse"));
    };
    if url.query().is_some() || url.fragment().is_some() {
        return Err(OpenError::InvalidUrl("it must not have a query or a fragment"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OpenError::InvalidUrl("it must not have a user name or password in it"));
    }
    let Ok(path) = object_store::path::Path::from_url_path(url.path()) else {
        return Err(OpenError::InvalidUrl("its path has invalid names"));
    };
    let prefix = parse_prefix(path.as_ref())?;
    let timeouts = options.remote.timeouts();
    let is_tls = url.scheme() == "https";
    let connector = match url.domain().filter(|_| options.reach == HostReach::Public) {
        Some(host) => Connector::to_public(host, is_tls, &timeouts),
        None => Connector::new(is_tls, &timeouts),
    };
    let connector = connector.map_err(OpenError::Client)?;
    url.set_path("/");
    let build = |connector: Connector, retry| {
        let builder = HttpBuilder::new().with_url(url.as_str()).with_retry(retry);
        let store = builder.with_http_connector(connector).build().map_err(OpenError::from_client)?;
        Ok::<_, OpenError>(Arc::new(store) as Arc<dyn ObjectStore>)
    };
    let inner = build(connector.clone(), timeouts.retries())?;
    let once = build(connector.once(), timeouts.no_retries())?;
    let backend = ObjectBackend::new(StoreKind::HTTP, inner, once, prefix, object_options(options));
    Ok(throttled(backend, &connector, options))
}
