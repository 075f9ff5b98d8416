//! The stores, and what zarrs does with each.

use std::sync::Arc;

use anyhow::{Context, bail};
use object_store::ClientOptions;
use object_store::client::{HttpConnector, ReqwestConnector};
use object_store::http::{HttpBuilder, HttpStore};
use zarrs::array::{Array, ArrayBuilder, ArrayBytes, data_type};
use zarrs::storage::{
    AsyncReadableStorage, AsyncReadableWritableListableStorage, ReadableStorage, StorePrefix,
};
use zarrs_http::HTTPStore;
use zarrs_object_store::AsyncObjectStore;
use zarrs_opendal::AsyncOpendalStore;

/// A store, by what it can do.
pub enum Store {
    /// Reads, and blocks.
    Blocking(String),
    /// Reads.
    Read(AsyncReadableStorage),
    /// Does everything.
    All(AsyncReadableWritableListableStorage),
}

/// A shape and the elements, in C order.
type Elements = (Vec<u64>, Vec<u8>);

impl Store {
    /// The store of a client, behind a URL.
    pub fn open(client: &str, url: &str) -> anyhow::Result<Self> {
        Ok(match client {
            "http" => Self::Blocking(url.to_owned()),
            "object_store" => {
                Self::All(Arc::new(AsyncObjectStore::new(object_store(url, ReqwestConnector::default())?)))
            }
            "opendal-http" => {
                let http = opendal::services::Http::default().endpoint(url);
                Self::Read(Arc::new(AsyncOpendalStore::new(opendal::Operator::new(http)?)))
            }
            "opendal-webdav" => {
                let webdav = opendal::services::Webdav::default().endpoint(url);
                Self::All(Arc::new(AsyncOpendalStore::new(opendal::Operator::new(webdav)?)))
            }
            _ => bail!("there is no client {client}"),
        })
    }

    /// An array, element by element.
    pub async fn read(&self, path: &str) -> anyhow::Result<Elements> {
        match self {
            Self::Blocking(url) => tokio::task::block_in_place(|| read_blocking(url, path)),
            Self::Read(store) => {
                let array = Array::async_open(store.clone(), path).await?;
                let bytes = array.async_retrieve_array_subset::<ArrayBytes>(&array.subset_all()).await?;
                elements(array.shape(), bytes)
            }
            Self::All(store) => {
                let array = Array::async_open(store.clone(), path).await?;
                let bytes = array.async_retrieve_array_subset::<ArrayBytes>(&array.subset_all()).await?;
                elements(array.shape(), bytes)
            }
        }
    }

    /// Creates an array of uint16, and writes all of its elements.
    pub async fn write(
        &self,
        path: &str,
        shape: Vec<u64>,
        shards: Vec<u64>,
        chunks: Vec<u64>,
        values: Vec<u8>,
    ) -> anyhow::Result<()> {
        let array = ArrayBuilder::new(shape, shards, data_type::uint16(), 0u16)
            .subchunk_shape(chunks)
            .build(self.all()?, path)?;
        array.async_store_metadata().await?;
        let values = ArrayBytes::new_flen(values);
        Ok(array.async_store_array_subset(&array.subset_all(), values).await?)
    }

    /// All keys below a prefix.
    pub async fn list(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        Ok(names(&self.all()?.list_prefix(&StorePrefix::new(prefix)?).await?))
    }

    /// The keys and prefixes right below a prefix.
    pub async fn list_dir(&self, prefix: &str) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let found = self.all()?.list_dir(&StorePrefix::new(prefix)?).await?;
        Ok((names(found.keys()), names(found.prefixes())))
    }

    /// Erases all below a prefix.
    pub async fn erase(&self, prefix: &str) -> anyhow::Result<()> {
        Ok(self.all()?.erase_prefix(&StorePrefix::new(prefix)?).await?)
    }

    fn all(&self) -> anyhow::Result<AsyncReadableWritableListableStorage> {
        match self {
            Self::All(store) => Ok(store.clone()),
            Self::Blocking(_) | Self::Read(_) => bail!("this client only reads"),
        }
    }
}

/// object_store's store over HTTP.
pub fn object_store(url: &str, connector: impl HttpConnector) -> anyhow::Result<HttpStore> {
    let options = ClientOptions::new().with_allow_http(true);
    let builder = HttpBuilder::new().with_url(url).with_client_options(options);
    Ok(builder.with_http_connector(connector).build()?)
}

fn read_blocking(url: &str, path: &str) -> anyhow::Result<Elements> {
    let store: ReadableStorage = Arc::new(HTTPStore::new(url)?);
    let array = Array::open(store, path)?;
    let bytes = array.retrieve_array_subset::<ArrayBytes>(&array.subset_all())?;
    elements(array.shape(), bytes)
}

fn elements(shape: &[u64], bytes: ArrayBytes) -> anyhow::Result<Elements> {
    let bytes = bytes.into_fixed().context("elements of variable length")?;
    Ok((shape.to_vec(), bytes.into_owned()))
}

fn names<T: ToString>(found: &[T]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}
