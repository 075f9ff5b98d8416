"""Every array of the fixtures reads in views as it does where it is stored, by each client that reads it there, and
dependent arrays as they should.

Views are of stores of any kind: one backend will do. `test_views.py` has what depends on it.
"""

import json
import math
import pathlib
import urllib.parse

import numpy
import pytest
import zarr

import clients
import processes
import programs

DATA = pathlib.Path(__file__).parent.parent / "data"
FIXTURES = DATA / "zarr-python"
FAMILIES = json.loads((DATA / "dependent/expected_dependent.json").read_text())
VIEWS = ["plain", "unshard"]


def arrays():
    """The path and the format of each array of the fixtures."""
    for path in sorted(FIXTURES.rglob("*")):
        if path.name == ".zarray":
            yield path.parent.relative_to(FIXTURES).as_posix(), 2
        elif path.name == "zarr.json" and json.loads(path.read_bytes())["node_type"] == "array":
            yield path.parent.relative_to(FIXTURES).as_posix(), 3


ARRAYS = dict(arrays())


def nodes():
    """Each array of the families that has a place of its own, and what is expected of it."""
    for family, found in FAMILIES.items():
        for path, node in found["nodes"].items():
            if node.get("rebased") and node.get("sum") is not None:
                yield f"{family}.zarr/{path}".rstrip("/"), node


NODES = dict(nodes())


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of the fixtures: `url(view, mount)` is where a view, or `store`, is of one."""
    config = tmp_path_factory.mktemp("config") / "zarrd.toml"
    folders = {"fixtures": FIXTURES, "dependent": DATA / "dependent"}
    lines = [f"[mounts.{name}]\nurl = {json.dumps(str(folder))}\n" for name, folder in folders.items()]
    config.write_text("".join(lines))
    with processes.zarrd("--config", str(config)) as running:
        yield lambda view, mount: f"{running.base}/{view}/{mount}/"


@pytest.fixture(scope="module")
def zarrita(tmp_path_factory):
    """Reads by zarrita what is at paths below a URL; what it cannot read is None."""
    folder = programs.of_node(tmp_path_factory.mktemp("programs"))
    with programs.running("node", folder / "read.mjs") as ask:

        def read(url, paths):
            quoted = [urllib.parse.quote(path) for path in paths]
            found = ask({"client": "zarrita", "url": url.rstrip("/"), "paths": quoted})
            return [array_or_none(one) for one in found]

        yield read


def array_or_none(found):
    try:
        return programs.array(found)
    except Exception:  # What a client cannot read, it cannot read where it is stored either: that is compared.
        return None


def each(read):
    """Reads many arrays by what reads one of a path and a format."""

    def read_all(url, paths):
        return [attempt(read, url, path) for path in paths]

    return read_all


def attempt(read, url, path):
    try:
        return numpy.asarray(read(url, urllib.parse.quote(path), ARRAYS.get(path, 3)))
    except Exception:  # As above.
        return None


def is_same(one, other):
    if one is None or other is None or one.shape != other.shape:
        return False
    # Of objects, and of strings of any length, the bytes are not the elements.
    if "O" in one.dtype.kind + other.dtype.kind or "T" in one.dtype.kind + other.dtype.kind:
        return one.tolist() == other.tolist()
    one, other = (array.astype(array.dtype.newbyteorder("=")) for array in (one, other))
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def local(root, path, _zarr_format):
    return zarr.open_array(f"{root}/{urllib.parse.unquote(path)}", mode="r")[...]


def check(read_all, served, view, at_least):
    """What a client reads of a view is what it reads of the store, or what is right, should it read the store wrongly."""
    paths = list(ARRAYS)
    right = each(local)(FIXTURES, paths)
    stored = read_all(served("store", "fixtures"), paths)
    shown = read_all(served(view, "fixtures"), paths)
    assert sum(values is not None for values in stored) >= at_least
    wrong = []
    for path, expected, one, other in zip(paths, right, stored, shown, strict=True):
        if one is not None and not is_same(one, other) and not is_same(expected, other):
            wrong.append(path)
    assert wrong == []


@pytest.mark.parametrize("view", VIEWS)
def test_zarr_python_reads_every_array_of_the_fixtures_equal(served, view):
    check(each(clients.fsspec), served, view, at_least=360)


@pytest.mark.parametrize("view", VIEWS)
def test_tensorstore_reads_equal_what_it_reads_at_all(served, view):
    check(each(clients.tensorstore_http), served, view, at_least=200)


@pytest.mark.parametrize("view", VIEWS)
def test_zarrita_reads_equal_what_it_reads_at_all(served, zarrita, view):
    check(zarrita, served, view, at_least=150)


def without_shards(served):
    """The sharded arrays of the fixtures that have no shards in the view without them."""
    for path in ARRAYS:
        if "/shard/" in path:
            array = zarr.open_array(f"{served('unshard', 'fixtures')}{path}", mode="r")
            if array.shards is None:
                yield path


def test_zarrita_reads_inner_chunks_whose_index_it_expects_in_another_place(served, zarrita):
    paths = list(without_shards(served))
    assert len(paths) > 20
    stored = zarrita(served("store", "fixtures"), paths)
    shown = zarrita(served("unshard", "fixtures"), paths)
    gained = []
    for path, before, after in zip(paths, stored, shown, strict=True):
        local = zarr.open_array(FIXTURES / path, mode="r")[...]
        if after is not None:
            assert is_same(after, numpy.asarray(local)), path
        if after is not None and before is None:
            gained.append(path)
    assert gained


def check_family(values, expected, what):
    values = numpy.asarray(values)
    assert list(values.shape) == expected["metadata"]["shape"], what
    first = values[tuple(slice(5) for _ in values.shape)]
    assert first.ravel().tolist() == expected["slice_first"], what
    assert math.isclose(float(values.astype("float64").sum()), expected["sum"]), what


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("what", NODES)
def test_zarr_python_opens_every_dependent_array(served, view, what):
    for read in [clients.fsspec, clients.obstore_http]:
        check_family(read(served(view, "dependent"), what, 3), NODES[what], what)


@pytest.mark.parametrize("view", VIEWS)
def test_tensorstore_and_zarrita_open_every_dependent_array(served, zarrita, view):
    shown = zarrita(served(view, "dependent"), list(NODES))
    for (what, expected), values in zip(NODES.items(), shown, strict=True):
        check_family(values, expected, what)
        check_family(clients.tensorstore_http(served(view, "dependent"), what, 3), expected, what)


@pytest.mark.parametrize("view", VIEWS)
def test_a_group_lists_its_arrays_and_they_those_that_they_declare(served, view):
    root = clients.obstore_http_store(served(view, "dependent"))
    found = {entry["path"].removeprefix(f"{view}/dependent/") for batch in root.list() for entry in batch}
    documents = {key.rpartition("/")[0] for key in found if key.endswith("zarr.json")}
    assert set(NODES) <= documents
