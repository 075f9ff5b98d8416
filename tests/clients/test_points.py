"""`isel.NAME=` with lists selects what xarray selects by the same lists, and refuses what xarray refuses."""

import io
import random

import numpy
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
