"""Clients open a hierarchy in other chunks and by other codecs, of either version of the format, like any store."""

import numpy
import pytest
import requests
import xarray
import zarr

import arrays
import clients
from arrays import ARRAYS, FORMATS, path
from processes import SECONDS
from programs import array
from test_node import ZARRITA, read as read_in_node  # noqa: F401 (a fixture)

RECIPES = ["16,16,16/zstd-3", "auto/raw", "9,30/blosc-lz4", "40/gzip-1", "20,20/blosc-zstd-9"]
SAFE = {"float16": "float32", "int64": "float64", "uint64": "float64"}
"""The types that browsers do not hold, and what they are cast to."""

# Both formats are there. A client that does not choose one gets v3, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:Both zarr.json")


def fsspec(root, key, zarr_format):
    return zarr.open_array(f"{root}{key}", mode="r", zarr_format=zarr_format)[...]


def obstore(root, key, zarr_format):
    store = clients.obstore_store(root, read_only=True)
    return zarr.open_array(store, path=key, mode="r", zarr_format=zarr_format)[...]


def with_each_reader(test):
    """Gives a test each way to read an array of a format as `read`."""
    readers = {**clients.READERS, "zarr-python + fsspec": fsspec, "zarr-python + obstore": obstore}
    marked = [pytest.param(read, id=name, marks=pytest.mark.client(name, "read")) for name, read in readers.items()]
    return pytest.mark.parametrize("read", marked)(test)


IN_JAVASCRIPT = [name for name in ZARRITA if name != "v3_sharded_sparse"]


def rechunk(server, mount, recipe, key=""):
    return server.store(mount, f"{recipe}/{key}").replace("/store/", "/rechunk/", 1)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("recipe", RECIPES)
@with_each_reader
def test_every_array_reads_equal_in_either_format(server, mount, read, recipe, zarr_format):
    for name, stored in ARRAYS.items():
        if 0 in stored.values.shape:
            continue
        values = read(rechunk(server, mount, recipe), path(name), zarr_format)
        clients.assert_same(values, stored.values.astype(stored.values.dtype.newbyteorder("<")))


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.client("zarr-python + fsspec", "read")
def test_the_metadata_is_that_of_the_recipe(server, mount, zarr_format):
    root = rechunk(server, mount, "12,16,100/zstd-7")
    sharded = zarr.open_array(root, path=path("v3_sharded"), mode="r", zarr_format=zarr_format)
    assert (sharded.chunks, sharded.shape, sharded.shards) == ((12, 16, 30), (50, 40, 30), None)
    assert {**arrays.ATTRIBUTES} == {key: value for key, value in sharded.attrs.items() if key[0] != "_"}
    (compressor,) = sharded.compressors
    assert compressor.level == 7
    named = zarr.open_array(root, path=path("v3_zstd_missing_nan"), mode="r", zarr_format=zarr_format)
    if zarr_format == 3:
        assert named.metadata.dimension_names == ("y", "x")
    else:
        assert named.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
    clients.assert_same(named[...], ARRAYS["v3_zstd_missing_nan"].values)


@pytest.mark.parametrize("zarr_format", FORMATS)
@with_each_reader
def test_types_that_browsers_lack_are_cast(server, mount, read, zarr_format):
    root = rechunk(server, mount, "auto/zstd/dtype=safe")
    clients.assert_same(read(root, path("v3_half"), zarr_format), ARRAYS["v3_half"].values.astype("float32"))
    clients.assert_same(read(root, path("v2_blosc"), zarr_format), ARRAYS["v2_blosc"].values)
    # Its elements are no float64: that is said, and nothing is rounded.
    answer = requests.get(f"{root}{path('v3_blosc_big_endian')}/c/0/0", timeout=SECONDS)
    assert answer.status_code == 501
    assert "float64" in answer.json()["detail"]


@with_each_reader
def test_integers_that_float64_represents_exactly_are_cast(server, writable, read):
    values = numpy.array([[0, -1, 2**53], [-(2**53), 3 * 2**60, 7]], dtype="int64")
    url = server.store(writable, "cast/")
    document = {
        "zarr_format": 2,
        "shape": values.shape,
        "chunks": values.shape,
        "dtype": "<i8",
        "compressor": None,
        "fill_value": 0,
        "filters": None,
        "order": "C",
    }
    requests.put(f"{url}.zarray", json=document, timeout=SECONDS).raise_for_status()
    requests.put(f"{url}0.0", data=values.tobytes(), timeout=SECONDS).raise_for_status()
    for recipe in ["2,2/zstd/dtype=safe", "auto/raw/dtype=float64"]:
        read_values = read(rechunk(server, writable, recipe), "cast", 3)
        clients.assert_same(read_values, values.astype("float64"))


@pytest.mark.client("zarr-python + fsspec", "read", "list")
def test_a_hierarchy_is_listed_with_the_chunks_that_are_stored(server, mount):
    group = zarr.open_group(rechunk(server, mount, "16,16/zstd", FORMATS[3]), mode="r")
    members = dict(group.members())
    assert set(members) == {name for name, stored in ARRAYS.items() if stored.zarr_format == 3}
    sparse = members["v3_sharded_sparse"]
    assert (sparse.chunks, 0 < sparse.nchunks_initialized < sparse.nchunks) == ((16, 16), True)
    assert members["v3_zstd_missing_nan"].nchunks_initialized < members["v3_zstd_missing_nan"].nchunks


@clients.over_each_store("zarr-python", "read")
def test_consolidated_metadata_is_of_the_recipe(server, mount, open_store):
    for zarr_format in FORMATS:
        outer, inner = FORMATS[zarr_format].split("/")
        store = open_store(rechunk(server, f"consolidated-{mount}", "10,10,10/zstd", outer))
        group = zarr.open_consolidated(store, mode="r", zarr_format=3)
        name = {2: "v2_blosc", 3: "v3_sharded"}[zarr_format]
        opened = group[f"{inner}/{name}"]
        assert opened.metadata.chunk_grid.chunk_shape == (10, 10, min(10, opened.shape[2]))
        clients.assert_same(opened[...], ARRAYS[name].values)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.client("xarray", "read")
def test_a_dataset_reads_equal_in_the_other_format(server, mount, zarr_format):
    other = {2: 3, 3: 2}[zarr_format]
    for group in arrays.GROUPS:
        root = rechunk(server, f"datasets-{mount}", "3,5,7/zstd-1", f"v{zarr_format}")
        read = xarray.open_zarr(root, group=group, zarr_format=other, consolidated=False)
        xarray.testing.assert_identical(read.load(), arrays.dataset())


@pytest.mark.parametrize(
    ("client", "names", "recipe"),
    [
        pytest.param("zarrita", IN_JAVASCRIPT, "11,13,17/blosc-lz4", marks=pytest.mark.client("zarrita (Node)", "read")),
        pytest.param("zarrita", IN_JAVASCRIPT, "auto/zstd", marks=pytest.mark.client("zarrita (Node)", "read")),
        # It knows v2 alone: an old viewer opens new data.
        pytest.param("zarr.js", ["v3_sharded", "v2_blosc"], "16,16,16/blosc-lz4", marks=pytest.mark.client("zarr.js", "read")),
    ],
)
def test_javascript_reads_equal(server, mount, read_in_node, client, names, recipe):  # noqa: F811
    url = rechunk(server, mount, recipe)
    found = read_in_node(client, url, *map(path, names))
    for name, values in zip(names, found, strict=True):
        clients.assert_same(array(values), ARRAYS[name].values)
