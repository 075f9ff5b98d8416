"""How each client opens a store or an array behind a URL, with its own defaults wherever there is a choice."""

import numpy
import obstore.store
import tensorstore
import zarr
import zarr.storage


def obstore_store(url, **options):
    """A store of zarr-python through obstore."""
    http = obstore.store.HTTPStore.from_url(url, client_options={"allow_http": True, "timeout": "30s"})
    return zarr.storage.ObjectStore(http, **options)


def fsspec(root, path, _zarr_format):
    return zarr.open_array(f"{root}{path}", mode="r")[...]


def obstore_http(root, path, _zarr_format):
    return zarr.open_array(obstore_store(root, read_only=True), path=path, mode="r")[...]


def tensorstore_http(root, path, zarr_format):
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    spec = {"driver": driver, "kvstore": {"driver": "http", "base_url": root, "path": f"{path}/"}}
    return tensorstore.open(spec, read=True).result(timeout=30).read().result(timeout=30)


READERS = {"fsspec": fsspec, "obstore": obstore_http, "tensorstore": tensorstore_http}


def assert_same(read, expected):
    """The same elements, shape and data type; byte order in memory is the client's own affair."""
    read, expected = (array.astype(array.dtype.newbyteorder("=")) for array in (numpy.asarray(read), expected))
    numpy.testing.assert_array_equal(read, expected, strict=True)
