"""Clients of Zarr open `/store/…` like any store, and read what was written."""

import numpy
import pytest
import requests
import tensorstore
import zarr

import arrays
import clients
from arrays import ARRAYS, ATTRIBUTES, FORMATS, path
from processes import SECONDS


@pytest.mark.parametrize("name", ARRAYS)
@clients.with_each_reader
def test_an_array_reads_equal(server, mount, read, name):
    array = ARRAYS[name]
    clients.assert_same(read(server.store(mount), path(name), array.zarr_format), array.values)


@clients.over_each_store("zarr-python", "read")
def test_a_part_of_a_shard_reads_equal(server, mount, open_store):
    array = zarr.open_array(open_store(server.store(mount, path("v3_sharded"))), mode="r")
    numpy.testing.assert_array_equal(array[30:40, 5, ::3], ARRAYS["v3_sharded"].values[30:40, 5, ::3])


@pytest.mark.client("tensorstore http", "read")
def test_a_shard_that_changes_is_read_at_one_version(server, writable):
    url = server.store(writable, "changing-shard")
    values = arrays.values("uint16", 64, 64)
    array = zarr.create_array(url, data=values, shards=(64, 64), chunks=(8, 8))
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "http", "base_url": f"{url}/"},
        # What was read before is asked for again, and the index of the shard is kept.
        "context": {"cache_pool": {"total_bytes_limit": 10_000_000}},
        "recheck_cached_data": True,
    }
    opened = tensorstore.open(spec, read=True).result(timeout=SECONDS)
    for turn in range(5):
        clients.assert_same(opened[turn : turn + 9, 3:40].read().result(timeout=SECONDS), values[turn : turn + 9, 3:40])
        clients.assert_same(opened.read().result(timeout=SECONDS), values)
        values = values[::-1].copy()
        array[...] = values


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.client("zarr-python + fsspec", "list")
def test_the_members_of_nested_groups_are_listed(server, mount, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    group = zarr.open_group(server.store(mount, outer), mode="r")
    assert dict(group.attrs) == ATTRIBUTES
    members = dict(group.members(max_depth=None))
    names = {name for name, array in ARRAYS.items() if array.zarr_format == zarr_format}
    assert set(members) == {inner} | {f"{inner}/{name}" for name in names}
    assert dict(members[inner].attrs) == {"inner": True}
    for name in names:
        assert dict(members[f"{inner}/{name}"].attrs) == ATTRIBUTES
        assert members[f"{inner}/{name}"].shape == ARRAYS[name].values.shape


def test_nodes_are_described_alike_whatever_their_format(server, mount):
    for name, array in ARRAYS.items():
        answer = requests.get(f"{server.base}/v1/nodes/{mount}/{path(name)}", timeout=SECONDS)
        assert answer.status_code == 200
        node = answer.json()
        assert node["zarr_format"] == array.zarr_format
        assert node["metadata"]["shape"] == list(array.values.shape), name
        assert node["metadata"]["data_type"] == array.values.dtype.name, name
        assert node["metadata"]["attributes"] == ATTRIBUTES, name
