"""How each client opens a store or an array behind a URL, with its own defaults wherever there is a choice."""

import numpy
import obstore.store
import pytest
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


STORES = {"fsspec": str, "obstore": lambda url: obstore_store(url, read_only=True)}
"""How zarr-python, and what is built on it, reaches a store that it reads."""

READERS = {"zarr-python + fsspec": fsspec, "zarr-python + obstore": obstore_http, "tensorstore http": tensorstore_http}


def over_each_store(client, *verbs):
    """Gives a test the ways to reach a store as `open_store`; each counts as a client of its own."""
    ways = STORES.items()
    marks = {name: pytest.mark.client(f"{client} + {name}", *verbs) for name in STORES}
    return pytest.mark.parametrize("open_store", [pytest.param(way, id=name, marks=marks[name]) for name, way in ways])


def with_each_reader(test):
    """Gives a test each way to read an array as `read`."""
    readers = [pytest.param(read, id=name, marks=pytest.mark.client(name, "read")) for name, read in READERS.items()]
    return pytest.mark.parametrize("read", readers)(test)


def assert_same(read, expected):
    """The same elements, shape and data type; byte order in memory is the client's own affair."""
    read, expected = (array.astype(array.dtype.newbyteorder("=")) for array in (numpy.asarray(read), expected))
    numpy.testing.assert_array_equal(read, expected, strict=True)
