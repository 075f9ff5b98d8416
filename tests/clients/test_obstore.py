"""zarr-python through obstore on a mount at the root: what it creates, changes, lists and erases is what is there."""

import numpy
import pytest
import zarr
from zarr.core.sync import sync

import arrays
import clients
from arrays import ARRAYS, ATTRIBUTES, FORMATS

CLIENT = "zarr-python + obstore"
PATCHED = f"{CLIENT} (patched)"


@pytest.fixture
def store(server, empty):
    return clients.WRITERS["obstore (patched)"](server.root(empty))


@pytest.mark.client(CLIENT, "list")
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_the_members_of_nested_groups_are_listed(server, mount, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    store = clients.obstore_store(server.root(mount), read_only=True)
    members = dict(zarr.open_group(store, path=outer, mode="r").members(max_depth=None))
    names = {name for name, array in ARRAYS.items() if array.zarr_format == zarr_format}
    assert set(members) == {inner} | {f"{inner}/{name}" for name in names}
    for name in names:
        assert dict(members[f"{inner}/{name}"].attrs) == ATTRIBUTES


@pytest.mark.client(CLIENT, "read", "list")
def test_every_key_is_listed_and_read(server, mount):
    store = clients.obstore_store(server.root(mount), read_only=True)
    files = {path.relative_to(server.files).as_posix(): path for path in server.files.rglob("*") if path.is_file()}
    assert sorted(keys(store)) == sorted(files)
    for key in keys(store, "new/inner/v3_half"):
        assert sync(store.get(key, zarr.core.buffer.default_buffer_prototype())).to_bytes() == files[key].read_bytes()


@pytest.mark.client(PATCHED, "write", "read", "list")
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_hierarchy_is_built_changed_and_erased(store, zarr_format):
    root = zarr.create_group(store, zarr_format=zarr_format)
    group = zarr.create_group(store, path="group", attributes=dict(ATTRIBUTES), zarr_format=zarr_format)
    names = [name for name, array in ARRAYS.items() if array.zarr_format == zarr_format][:4]
    for name in names:
        ARRAYS[name].write(store, f"group/{name}")
    assert dict(root["group"].attrs) == ATTRIBUTES
    assert sorted(group) == sorted(names)
    for name in names:
        clients.assert_same(group[name][...], ARRAYS[name].values)

    group.attrs["more"] = [1, 2]
    assert dict(zarr.open_group(store, path="group", mode="r").attrs) == ATTRIBUTES | {"more": [1, 2]}
    del group[names[0]]
    assert sorted(group) == sorted(names[1:])
    assert not keys(store, f"group/{names[0]}")
    del root["group"]
    assert not list(root)
    assert sorted(keys(store)) == sorted({2: [".zattrs", ".zgroup"], 3: ["zarr.json"]}[zarr_format])


@pytest.mark.client(PATCHED, "write", "read", "list")
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_an_array_grows_and_shrinks(store, zarr_format):
    values = arrays.values("int32", 20, 30)
    array = zarr.create_array(store, data=values, chunks=(10, 10), zarr_format=zarr_format)
    array.append(values)
    clients.assert_same(zarr.open_array(store, mode="r")[...], numpy.concatenate([values, values]))
    array.resize((15, 10))
    clients.assert_same(zarr.open_array(store, mode="r")[...], values[:15, :10])
    # Chunks that lie outside are gone.
    chunks = {2: {"0.0", "1.0"}, 3: {"c/0/0", "c/1/0"}}[zarr_format]
    assert {key for key in keys(store) if "z" not in key} == chunks


@pytest.mark.client(PATCHED, "write", "list")
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_an_array_that_exists_is_overwritten(store, zarr_format):
    name = {2: "v2_blosc", 3: "v3_sharded"}[zarr_format]
    ARRAYS[name].write(store)
    before = set(keys(store))
    values = arrays.values("uint8", 3)
    zarr.create_array(store, data=values, chunks=(3,), overwrite=True, zarr_format=zarr_format)
    clients.assert_same(zarr.open_array(store, mode="r")[...], values)
    assert set(keys(store)) != before
    assert len(keys(store)) == {2: 3, 3: 2}[zarr_format]


def keys(store, prefix=""):
    async def gathered():
        return [key async for key in store.list_prefix(prefix)]

    return sync(gathered())
