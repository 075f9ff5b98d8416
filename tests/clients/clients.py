"""How each client opens a store or an array behind a URL, with its own defaults wherever there is a choice."""

import contextlib

import numpy
import obstore
import obstore.store
import pytest
import tensorstore
import zarr
import zarr.storage


def obstore_http_store(url, **headers):
    """obstore's own store; each request carries the headers."""
    options = {"allow_http": True, "timeout": "30s", "default_headers": headers}
    return obstore.store.HTTPStore.from_url(url, client_options=options)


def obstore_store(url, **options):
    """A store of zarr-python through obstore."""
    return zarr.storage.ObjectStore(obstore_http_store(url), **options)


class ObstoreWriter(zarr.storage.ObjectStore):
    """The same with what obstore leaves out over HTTP, and groups inside of groups need: to set what is not there yet.

    All it takes is a header. zarr-python copies a store by its parts, so what sends it is made when it is asked for.
    """

    async def set_if_not_exists(self, key, value):
        self._check_writable()
        creator = obstore_http_store(self.store.url, **{"If-None-Match": "*"})
        with contextlib.suppress(obstore.exceptions.PreconditionError):
            await obstore.put_async(creator, key, value.as_buffer_like())

    async def list_dir(self, prefix):
        # Its own wants an event loop to be running before it is iterated over.
        async for name in super().list_dir(prefix):
            yield name


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


WRITERS = {"fsspec": str, "obstore (patched)": lambda url: ObstoreWriter(obstore_http_store(url))}
"""The same for one that it writes."""


def over_each_store(client, *verbs, ways=STORES):
    """Gives a test the ways to reach a store as `open_store`; each counts as a client of its own."""
    marks = {name: pytest.mark.client(f"{client} + {name}", *verbs) for name in ways}
    each = [pytest.param(way, id=name, marks=marks[name]) for name, way in ways.items()]
    return pytest.mark.parametrize("open_store", each)


def with_each_reader(test):
    """Gives a test each way to read an array as `read`."""
    readers = [pytest.param(read, id=name, marks=pytest.mark.client(name, "read")) for name, read in READERS.items()]
    return pytest.mark.parametrize("read", readers)(test)


def assert_same(read, expected):
    """The same elements, shape and data type; byte order in memory is the client's own affair."""
    read, expected = (array.astype(array.dtype.newbyteorder("=")) for array in (numpy.asarray(read), expected))
    numpy.testing.assert_array_equal(read, expected, strict=True)
