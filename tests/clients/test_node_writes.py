"""Nodes that `/v1/nodes` creates and changes are what zarr-python, xarray and tensorstore read and write."""

import numpy
import pytest
import requests
import tensorstore
import xarray
import zarr

import clients
from processes import SECONDS

# What is said of a new array, and the attributes that zarr-python reads of it.
ARRAYS = {
    "described": {"shape": [20, 30], "data_type": "float32"},
    "sharded": {"shape": [20, 30], "data_type": "uint16", "chunks": [4, 5], "shards": [8, 30], "codecs": "blosc-zstd-3"},
    "strings": {"shape": [3], "data_type": "string"},
    "times": {"shape": [5], "data_type": "<M8[s]", "fill_value": "NaT"},
    "v2": {"shape": [20, 30], "data_type": "<i4", "zarr_format": 2, "chunks": [7, 7], "codecs": "zstd-1", "fill_value": 5},
}


def node(server, mount, path):
    return f"{server.base}/v1/nodes/{mount}/{path}"


def send(method, url, body):
    answer = requests.request(method, url, json=body, timeout=SECONDS)
    answer.raise_for_status()
    return answer


@pytest.mark.parametrize("name", ARRAYS)
def test_zarr_python_writes_to_a_created_array_and_reads_it(server, writable, name):
    said, path = ARRAYS[name], f"created/{name}"
    send("PUT", node(server, writable, path), said)
    array = zarr.open_array(clients.obstore_store(server.store(writable, path)), mode="r+")
    assert array.shape == tuple(said["shape"])
    if name == "strings":
        array[:] = numpy.array(["a", "", "ü"], dtype=object)
        answer = requests.get(server.data(writable, path), params={"format": "json"}, timeout=SECONDS)
        assert answer.json() == ["a", "", "ü"]
        return
    expected = numpy.arange(numpy.prod(array.shape)).reshape(array.shape).astype(array.dtype)
    array[:] = expected
    read = requests.get(server.data(writable, path), params={"format": "bytes"}, timeout=SECONDS)
    numpy.testing.assert_array_equal(numpy.frombuffer(read.content, array.dtype).reshape(array.shape), expected)
    if name != "times":
        driver = {2: "zarr", 3: "zarr3"}[said.get("zarr_format", 3)]
        spec = {"driver": driver, "kvstore": {"driver": "http", "base_url": server.store(writable, path) + "/"}}
        numpy.testing.assert_array_equal(tensorstore.open(spec, open=True).result().read().result(), expected)


def test_an_array_that_zarr_python_made_shrinks_and_grows_without_old_values(server, writable):
    path = "created/resized"
    store = clients.obstore_store(server.store(writable, path))
    array = zarr.create_array(store, shape=(10, 10), chunks=(4, 4), dtype="int32", fill_value=-1)
    array[:] = 7
    expected = numpy.full((12, 11), -1)
    expected[:5, :10] = 7
    for shape in [[5, 10], [12, 11]]:
        send("PATCH", node(server, writable, path), {"shape": shape})
    numpy.testing.assert_array_equal(zarr.open_array(store, mode="r")[:], expected)


def test_xarray_sees_new_variables_in_a_consolidated_dataset(server, writable):
    path = "created/dataset.zarr"
    days = xarray.Dataset({"rain": ("day", numpy.arange(4.0))}, {"day": numpy.arange(4)})
    options = {"anon": True, "endpoint_url": f"{server.base}/s3"}
    days.to_zarr(f"s3://{writable}/{path}", mode="w", consolidated=True, storage_options=options)
    said = {"like": f"{path}/rain", "attributes": {"units": "mm"}, "fill_value": 0}
    send("PUT", node(server, writable, f"{path}/snow"), said)
    requests.put(server.data(writable, f"{path}/snow"), json=[4, 3, 2, 1], timeout=SECONDS).raise_for_status()
    with xarray.open_zarr(clients.obstore_store(server.store(writable, path)), consolidated=True) as found:
        assert sorted(found.data_vars) == ["rain", "snow"]
        numpy.testing.assert_array_equal(found["snow"], [4, 3, 2, 1])
        assert found["snow"].dims == ("day",) and found["snow"].attrs["units"] == "mm"


def test_a_copied_dataset_is_read_as_its_source_is(server, writable):
    path, copy = "created/source.zarr", "created/copies/dataset.zarr"
    days = xarray.Dataset({"rain": (("day", "x"), numpy.arange(12.0).reshape(4, 3))}, {"day": numpy.arange(4)})
    options = {"anon": True, "endpoint_url": f"{server.base}/s3"}
    days.to_zarr(f"s3://{writable}/{path}", mode="w", consolidated=True, storage_options=options)
    answer = requests.put(node(server, writable, copy), params={"copy": path}, timeout=SECONDS)
    assert answer.status_code == 201, answer.text
    with xarray.open_zarr(clients.obstore_store(server.store(writable, copy)), consolidated=True) as found:
        xarray.testing.assert_identical(found.load(), days)
    again = requests.put(node(server, writable, copy), params={"copy": path}, timeout=SECONDS)
    assert (again.status_code, again.json()["written"]) == (409, False)
    # What is written to one of them is not in the other.
    array = zarr.open_array(clients.obstore_store(server.store(writable, f"{copy}/rain")), mode="r+")
    array[0] = -1
    source = zarr.open_array(clients.obstore_store(server.store(writable, f"{path}/rain")), mode="r")
    numpy.testing.assert_array_equal(source[:], days["rain"])
