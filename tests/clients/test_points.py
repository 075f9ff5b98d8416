"""Lists of positions and labels, points and conditions select what xarray selects by the same, and refuse what xarray refuses."""

import io
import random

import numpy
import pandas
import pytest
import requests
import xarray

import processes
from processes import SECONDS

SEED = 20261125
EACH = 130
"""Selections of each array."""

SHAPE = {"t": 11, "y": 23, "x": 17}


def arrays():
    rng = numpy.random.default_rng(SEED)
    numbers = rng.normal(size=tuple(SHAPE.values()))
    return {
        "floats": numbers.astype("float32"),
        "integers": (numbers * 1000).astype("int64"),
        "texts": numpy.round(numbers, 2).astype(str).astype(object),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("points")
    for name, values in arrays().items():
        dataset = xarray.Dataset({"v": (tuple(SHAPE), values)})
        encoding = {"v": {"chunks": (4, 5, 6)} | ({"shards": (8, 10, 12)} if name == "integers" else {})}
        dataset.to_zarr(at / name, zarr_format=3, consolidated=False, encoding=encoding)
    return at


@pytest.fixture(scope="module")
def running(folder):
    with processes.zarrd(f"d={folder}") as running:
        yield running


def listed(draw, length):
    """The text of a list, and its elements."""
    items = []
    for _ in range(draw.randrange(2, 9)):
        start = draw.randrange(length)
        items.append(draw.choice([start, start - length, slice(start, draw.randrange(length), draw.choice([1, 2, -1]))]))
    written = [f"{i.start}:{i.stop}:{i.step}" if isinstance(i, slice) else str(i) for i in items]
    return ",".join(written), numpy.concatenate([numpy.atleast_1d(numpy.arange(length)[item]) for item in items])


@pytest.mark.parametrize("name", ["floats", "integers", "texts"])
def test_lists_select_what_xarray_selects(running, folder, name):
    draw = random.Random(f"{SEED} {name}")
    array = xarray.open_zarr(folder / name, consolidated=False, chunks=None).v.load()
    compared = 0
    with requests.Session() as session:
        for _ in range(EACH):
            query, chosen = {}, {}
            for dimension, length in SHAPE.items():
                kind = draw.choice(["list", "list", "index", "all"])
                if kind == "list":
                    query[f"isel.{dimension}"], chosen[dimension] = listed(draw, length)
                elif kind == "index":
                    query[f"isel.{dimension}"] = chosen[dimension] = draw.randrange(length)
            wanted = array.isel(chosen).values
            text = {"format": "json" if name == "texts" else "npy"}
            answer = session.get(f"{running.base}/v1/data/d/{name}/v", params=query | text, timeout=SECONDS)
            assert answer.status_code == 200, (query, answer.text)
            found = numpy.array(answer.json(), dtype=object) if name == "texts" else numpy.load(io.BytesIO(answer.content))
            assert found.size == wanted.size and (name == "texts" or found.shape == wanted.shape), query
            assert numpy.array_equal(found.reshape(wanted.shape), wanted), query
            compared += 1
    assert compared == EACH


POINTS = 60
"""Selections of points of each dataset."""


def dataset():
    rng = numpy.random.default_rng(SEED + 1)
    lat = numpy.arange(60, 28, -2.5)
    lon = numpy.round(numpy.arange(0, 30, 1.5), 2).astype("float32")
    time = pandas.date_range("2020-02-25", periods=24, freq="6h")
    station = [f"s{number}..{number + 1}" for number in rng.permutation(9)]
    shape = (len(time), len(lat), len(lon), len(station))
    values = rng.integers(-30000, 30000, size=shape, dtype="int32")
    coordinates = {"time": time, "lat": lat, "lon": lon, "station": station}
    return xarray.Dataset({"v": (tuple(coordinates), values)}, coordinates)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    whole = dataset()
    for name, version, more in (("three", 3, {"shards": (10, 10, 14, 8)}), ("two", 2, {})):
        encoding = {"v": {"chunks": (5, 5, 7, 4)} | more}
        whole.to_zarr(folder / name, zarr_format=version, consolidated=False, encoding=encoding)
    with processes.zarrd(f"m={folder}") as running:
        yield running, whole.v


def post(session, running, name, body):
    return session.post(f"{running.base}/v1/data/m/{name}/v", json=body | {"format": "npy"}, timeout=SECONDS)


def as_json(label):
    """A label as a body has it."""
    if isinstance(label, (pandas.Timestamp, numpy.datetime64)):
        return str(numpy.datetime64(label, "s"))
    if isinstance(label, numpy.float32):
        return float(str(label))
    return label.item() if isinstance(label, numpy.generic) else label


def some_labels(draw, coordinate, count, off):
    """Labels of a coordinate; `off` moves numbers and times off their places, sometimes beyond the ends."""
    labels = [draw.choice(list(coordinate.values)) for _ in range(count)]
    if off and coordinate.dtype.kind == "M":
        return [label + numpy.timedelta64(draw.randrange(-20000, 20000), "s") for label in labels]
    if off and coordinate.dtype.kind == "f":
        return [coordinate.dtype.type(round(float(label) + draw.uniform(-2, 2), 2)) for label in labels]
    return labels


@pytest.mark.parametrize("name", ["three", "two"])
def test_points_select_what_xarray_selects(labelled, name):
    running, array = labelled
    draw = random.Random(f"{SEED} points {name}")
    compared = refused = 0
    with requests.Session() as session:
        for _ in range(POINTS):
            count = draw.choice([0, 1, 3, 40, 300])
            pointed = draw.sample(list(array.dims), draw.randrange(1, 5))
            method = draw.choice([None, None, "nearest", "ffill", "bfill"])
            body, indexers = {"points": {"sel": {}, "isel": {}}, "isel": {}, "sel": {}}, {}
            refuses = False
            for dimension in pointed:
                coordinate = array[dimension]
                if draw.random() < 0.4:
                    places = [draw.randrange(-coordinate.size, coordinate.size) for _ in range(count)]
                    body["points"]["isel"][dimension] = places
                    indexers[dimension] = numpy.array(places, dtype=int)
                    continue
                is_near = method is not None and coordinate.dtype.kind in "fM"
                if method and not is_near:
                    # Texts have no distances, so the method is not for them.
                    body["points"]["isel"][dimension] = [0] * count
                    indexers[dimension] = numpy.zeros(count, dtype=int)
                    continue
                labels = some_labels(draw, coordinate, count, is_near)
                body["points"]["sel"][dimension] = [as_json(label) for label in labels]
                index = coordinate.to_index()
                if is_near:
                    seconds = pandas.Timedelta("5h") if coordinate.dtype.kind == "M" else 1.5
                    body.setdefault("tolerance", {})[dimension] = "5h" if coordinate.dtype.kind == "M" else 1.5
                    body["method"] = method
                    found = index.get_indexer(labels, method=method, tolerance=seconds) if count else numpy.array([], dtype=int)
                else:
                    found = index.get_indexer(labels) if count else numpy.array([], dtype=int)
                refuses |= bool((found < 0).any())
                indexers[dimension] = found
            for dimension in set(array.dims) - set(pointed):
                kind = draw.choice(["all", "index", "list", "labels"])
                size = array.sizes[dimension]
                if kind == "index":
                    body["isel"][dimension] = indexers[dimension] = draw.randrange(size)
                elif kind == "list":
                    places = [draw.randrange(size) for _ in range(draw.randrange(0, 6))]
                    body["isel"][dimension], indexers[dimension] = places, numpy.array(places, dtype=int)
                elif kind == "labels" and method is None:
                    places = [draw.randrange(size) for _ in range(draw.randrange(1, 6))]
                    body["sel"][dimension] = [as_json(label) for label in array[dimension].values[places]]
                    indexers[dimension] = numpy.array(places, dtype=int)
            answer = post(session, running, name, body)
            if refuses:
                assert answer.status_code == 400 and answer.json()["code"] == "no-such-label", (body, answer.text)
                refused += 1
                continue
            assert answer.status_code == 200, (body, answer.text)
            vectors = {key: xarray.DataArray(value, dims="points") for key, value in indexers.items() if key in pointed}
            chosen = array.isel(vectors | {key: value for key, value in indexers.items() if key not in pointed})
            wanted = chosen.transpose("points", ...).values
            numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), wanted, err_msg=str(body), strict=True)
            compared += 1
    assert compared + refused == POINTS and compared >= POINTS // 2 and refused > 0


def test_a_hundred_thousand_points_are_one_request(labelled):
    running, array = labelled
    rng = numpy.random.default_rng(SEED + 2)
    picked = {name: rng.choice(array[name].values, 100_000) for name in ("lat", "lon")}
    body = {"points": {name: [as_json(label) for label in labels] for name, labels in picked.items()}, "isel": {"time": 7, "station": 2}}
    with requests.Session() as session:
        answer = post(session, running, "three", body)
        assert answer.status_code == 200, answer.text
        vectors = {name: xarray.DataArray(labels, dims="points") for name, labels in picked.items()}
        wanted = array.isel(time=7, station=2).sel(vectors).values
        numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), wanted, strict=True)
        body["points"]["lat"].append(60.0)
        assert post(session, running, "three", body).status_code == 400


def test_conditions_select_what_xarray_selects_by_the_same(labelled):
    running, array = labelled
    draw = random.Random(f"{SEED} where")
    signs = {
        "<": numpy.less,
        "<=": numpy.less_equal,
        ">": numpy.greater,
        ">=": numpy.greater_equal,
        "==": numpy.equal,
        "!=": numpy.not_equal,
    }
    with requests.Session() as session:
        for number in range(60):
            body, chosen = {"where": {}, "isel": {}}, array
            for dimension in draw.sample(list(array.dims), draw.randrange(1, 4)):
                coordinate = array[dimension].values
                conditions, holds = [], numpy.ones(len(coordinate), dtype=bool)
                for _ in range(draw.choice([1, 1, 2])):
                    sign, label = draw.choice(list(signs)), draw.choice(list(coordinate))
                    conditions.append(f"{sign} {as_json(label)}")
                    holds &= signs[sign](coordinate, label)
                body["where"][dimension] = conditions if len(conditions) > 1 else conditions[0]
                chosen = chosen.isel({dimension: numpy.flatnonzero(holds)})
            answer = post(session, running, draw.choice(["two", "three"]), body)
            assert answer.status_code == 200, (body, answer.text)
            numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), chosen.values, err_msg=str(body), strict=True)
