"""The first minute of a user: `zarrd serve --demo`, what it prints, and what it serves."""

import io
import json
import subprocess

import numpy
import pytest
import requests
import xarray
import zarr

import clients
import processes

# The demo's v3 root has a v2 group in it, of which clients of v3 say that it is none.
pytestmark = pytest.mark.filterwarnings("ignore:Object at v2/ is not recognized")


@pytest.fixture(scope="module")
def demo():
    with processes.zarrd("--demo") as running:
        yield running


def test_the_printed_commands_work_when_pasted(demo):
    lines = []
    while len(lines) < 3:
        line = demo.line()
        lines += [line] if line.startswith("  curl ") else []
    node, elements, bytes_ = (
        subprocess.run(["bash", "-o", "pipefail", "-ec", line], check=True, capture_output=True, timeout=60).stdout
        for line in lines
    )
    root = demo.store("demo")
    field = zarr.open_array(f"{root}field", mode="r")
    assert json.loads(node)["metadata"]["shape"] == list(field.shape)
    read = numpy.array(json.loads(elements), dtype=float).astype("float32")
    numpy.testing.assert_array_equal(read, field[0, ::20, ::40])
    shard = requests.get(f"{root}sharded/c/0/0/0", timeout=processes.SECONDS).content
    assert bytes_.split()[1:17] == [b"%02x" % byte for byte in shard[:16]]


@pytest.mark.parametrize("open_store", clients.STORES.values(), ids=clients.STORES)
@pytest.mark.parametrize(
    ("path", "zarr_format"),
    [("sharded", 3), ("image/0", 3), ("image/2", 3), ("field", 3), ("v2/blosc", 2)],
)
def test_an_array_of_the_demo_reads_equal_in_its_format(demo, open_store, path, zarr_format):
    array = zarr.open_array(open_store(demo.store("demo", path)), mode="r")
    assert array.metadata.zarr_format == zarr_format
    values = array[...]
    assert len(numpy.unique(values)) > 100
    answer = requests.get(demo.data("demo", path), params={"format": "npy"}, timeout=processes.SECONDS)
    clients.assert_same(values, numpy.load(io.BytesIO(answer.content)))
    clients.assert_same(clients.tensorstore_http(demo.store("demo"), path, zarr_format), values)


def test_the_members_of_the_demo_are_listed(demo):
    members = dict(zarr.open_group(demo.store("demo"), mode="r").members(max_depth=None))
    assert {"sharded", "image", "image/0", "image/1", "image/2", "field"} <= set(members)
    assert members["image"].attrs["ome"]["version"] == "0.5"
    old = dict(zarr.open_group(demo.store("demo", "v2"), mode="r", zarr_format=2).members())
    assert set(old) == {"blosc"}


def test_xarray_opens_the_demo(demo):
    dataset = xarray.open_zarr(demo.store("demo"), consolidated=False, chunks=None)
    field = zarr.open_array(demo.store("demo", "field"), mode="r")
    numpy.testing.assert_array_equal(dataset["field"].values, field[...])
    assert dataset["field"].dims == field.metadata.dimension_names


def test_the_points_of_the_demo_are_valid(demo):
    base = f"{demo.base}/v1/vectors/demo/points"
    found = requests.get(f"{base}/validate", timeout=processes.SECONDS).json()
    assert found["ok"] and found["complete"] and found["counts"]["error"] == found["counts"]["warning"] == 0, found
    vertices = requests.get(f"{base}/vertices?attributes=activity", timeout=processes.SECONDS).json()
    assert vertices["stats"]["rows"] == len(vertices["positions"]) == len(vertices["attributes"]["activity"]) == 6000
    low, high = numpy.min(vertices["positions"], 0), numpy.max(vertices["positions"], 0)
    assert (low >= 0).all() and (high <= 400).all()
