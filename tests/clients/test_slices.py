"""`/v1/data/…` answers slices as numpy does, in every format."""

import io
import json

import numpy
import pytest
import requests

from arrays import ARRAYS, path
from processes import SECONDS

SELECTIONS = {
    0: ["", "..."],
    1: ["", "...", "3:10", "-7:", ":-90:3", "5", "-1", "::-1", "80:20:-7", "7:7", "50:1000", "9:4", "[2:5]"],
    2: ["0:5,2:4", "-3:,1", "::7,::4", "...,-1", "-1,...", "::-1,::-3", "3,-2", "4:4", "2,4:2", "10:2:-3,1:2", "1:900"],
    3: ["7,2:9,-1", "...,2", "3,...,1:4", "::9,::-2,-3:", "::-1,::-1,::-1", "-1,-1,-1", "2:2,:,1", "(1:20:6,...)"],
}
"""By rank. Every one of these has a meaning in arrays of that rank that are not too short for its integers."""

CASES = [
    (name, selection)
    for name, array in ARRAYS.items()
    for selection in SELECTIONS[array.values.ndim]
    if array.values.size
]
CASES += [("v3_empty", selection) for selection in ["", "...", ":,1", "::-1,-2:", "0:9,2:2"]]


def sliced(name, selection):
    """numpy's answer."""
    selection = selection.strip("[]()") or "..."
    return ARRAYS[name].values[eval(f"numpy.s_[{selection}]")]


def ask(server, mount, name, selection, **query):
    query |= {"slice": selection} if selection else {}
    answer = requests.get(server.data(mount, path(name)), params=query, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize(("name", "selection"), CASES)
def test_a_slice_is_numpys_as_bytes(server, mount, name, selection):
    expected = sliced(name, selection)
    answer = ask(server, mount, name, selection)
    assert answer.content == expected.astype(expected.dtype.newbyteorder("<")).tobytes()
    assert answer.headers["Array-Data-Type"] == expected.dtype.name
    assert json.loads(answer.headers["Array-Shape"]) == list(expected.shape)


@pytest.mark.parametrize(("name", "selection"), CASES)
def test_a_slice_is_numpys_as_npy(server, mount, name, selection):
    expected = sliced(name, selection)
    for endian, mark in [("little", "<"), ("big", ">")]:
        answer = ask(server, mount, name, selection, format="npy", endian=endian)
        loaded = numpy.load(io.BytesIO(answer.content))
        assert loaded.dtype == expected.dtype.newbyteorder(mark)
        assert loaded.shape == expected.shape
        numpy.testing.assert_array_equal(loaded, expected)


@pytest.mark.parametrize(("name", "selection"), CASES)
def test_a_slice_is_numpys_as_json(server, mount, name, selection):
    expected = sliced(name, selection)
    elements = ask(server, mount, name, selection, format="json").json()
    read = read_lists(elements, expected.dtype, expected.ndim)
    # As text: there, NaN is itself.
    assert repr(read) == repr(expected.tolist())


def read_lists(lists, dtype, rank):
    if rank:
        return [read_lists(item, dtype, rank - 1) for item in lists]
    if dtype.kind == "c":
        return dtype.type(complex(*map(float, lists))).item()
    # A float's shortest text is that of its own width: 0.1 is not the double nearest to the float32.
    return dtype.type(float(lists) if dtype.kind == "f" else lists).item()


@pytest.mark.parametrize(("slice_", "axis", "length"), [("50,0,0", 0, 50), ("0,-41,0", 1, 40), ("0,0,30", 2, 30)])
def test_an_integer_out_of_range_is_reported_with_its_axis_and_length(server, mount, slice_, axis, length):
    answer = requests.get(server.data(mount, path("v3_sharded")), params={"slice": slice_}, timeout=SECONDS)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert f"axis {axis} of length {length}" in answer.json()["detail"]


def test_every_chunk_is_numpys(server, mount):
    values = ARRAYS["v2_blosc"].values
    for y in range(3):
        for x in range(2):
            for z in range(3):
                url = f"{server.base}/v1/chunk/{mount}/{path('v2_blosc')}/c/{y}/{x}/{z}"
                expected = values[y * 20 : y * 20 + 20, x * 25 : x * 25 + 25, z * 4 : z * 4 + 4]
                assert requests.get(url, timeout=SECONDS).content == expected.tobytes()
