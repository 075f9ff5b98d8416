"""Clients open views of a store like any store: without shards, and what they could not open before."""

import json
import pathlib

import numpy
import pytest
import requests
import zarr

import arrays
import clients
from arrays import ARRAYS, FORMATS, path
from processes import SECONDS

VIEWS = ["plain", "unshard"]
FIXTURES = pathlib.Path(__file__).parent.parent / "data/zarr-python/matrix-zarrpy-v3/shard"
"""Arrays with their index at either end, shards in shards, transposed, big-endian, with missing chunks, of strings."""

WHOLE = {"end_outer_crc", "start_outer_crc"}
"""Those with a checksum over whole shards, which stay whole."""


def view(server, kind, mount, key=""):
    return server.store(mount, key).replace("/store/", f"/{kind}/", 1)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", VIEWS)
@clients.with_each_reader
def test_an_array_reads_equal_in_a_view(server, mount, read, name, kind):
    array = ARRAYS[name]
    clients.assert_same(read(view(server, kind, mount), path(name), array.zarr_format), array.values)


@pytest.mark.client("zarr-python + fsspec", "read", "list")
def test_the_unshard_view_has_inner_chunks_instead_of_shards(server, mount):
    group = zarr.open_group(view(server, "unshard", mount, FORMATS[3]), mode="r")
    members = dict(group.members())
    assert set(members) == {name for name, array in ARRAYS.items() if array.zarr_format == 3}
    sharded = {"v3_sharded": (8, 16, 8), "v3_sharded_start": (5, 16), "v3_sharded_sparse": (4, 8)}
    for name, chunks in sharded.items():
        assert (members[name].shards, members[name].chunks) == (None, chunks)
        assert dict(members[name].attrs) == arrays.ATTRIBUTES
    stored = members["v3_sharded_sparse"].nchunks_initialized
    assert 0 < stored < members["v3_sharded_sparse"].nchunks
    assert members["v3_sharded"].nchunks_initialized == members["v3_sharded"].nchunks


@clients.over_each_store("zarr-python", "read")
def test_consolidated_metadata_has_no_shards_in_it(server, mount, open_store):
    outer, inner = FORMATS[3].split("/")
    store = open_store(view(server, "unshard", f"consolidated-{mount}", outer))
    group = zarr.open_consolidated(store, mode="r", zarr_format=3)
    array = group[f"{inner}/v3_sharded"]
    assert array.shards is None
    clients.assert_same(array[...], ARRAYS["v3_sharded"].values)


@pytest.mark.parametrize("name", sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir()))
@clients.over_each_store("zarr-python", "read")
def test_shards_of_every_kind_read_equal_without_them(server, writable, open_store, name):
    key = f"shards/{name}"
    server.upload(FIXTURES / name, writable, f"{key}/")
    expected = zarr.open_array(FIXTURES / name, mode="r")
    document = requests.get(view(server, "unshard", writable, f"{key}/zarr.json"), timeout=SECONDS)
    assert ("sharding_indexed" in document.text) == (name in WHOLE)
    read = zarr.open_array(open_store(view(server, "unshard", writable)), path=key, mode="r")
    numpy.testing.assert_array_equal(read[...], expected[...], strict=True)
    if name not in WHOLE | {"strings"}:
        opened = clients.tensorstore_http(view(server, "unshard", writable), key, 3)
        numpy.testing.assert_array_equal(opened, expected[...])


@clients.with_each_reader
def test_a_document_that_no_client_opens_is_read_in_the_plain_view(server, writable, read):
    values = arrays.values("uint8", 6)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [6],
        "data_type": {"name": "uint8"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [6]}},
        "chunk_key_encoding": "default",
        "fill_value": 0,
        "codecs": ["bytes"],
    }
    for key, value in {"zarr.json": json.dumps(document), "c/0": values.tobytes()}.items():
        url = server.store(writable, f"short-hand/{key}")
        requests.put(url, data=value, timeout=SECONDS).raise_for_status()
    with pytest.raises(Exception, match="."):
        read(server.store(writable), "short-hand", 3)
    clients.assert_same(read(view(server, "plain", writable), "short-hand", 3), values)
