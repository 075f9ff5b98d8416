"""`downsample=` and `/v1/stats` compute what numpy and exact arithmetic compute."""

import itertools
import math
from fractions import Fraction

import numpy
import pytest
import requests

from arrays import ARRAYS, path
from processes import SECONDS

FACTORS = {1: [(3,), (1000,)], 2: [(2, 3), (1, 5)], 3: [(2, 3, 4), (1, 8, 8), (5, 1, 7)]}
CASES = [
    (name, factors, method)
    for name, array in ARRAYS.items()
    if array.values.size and array.values.dtype.kind in "biuf"
    for factors in FACTORS.get(array.values.ndim, [])
    for method in ["mean", "min", "max", "mode", "stride"]
    if not (array.values.dtype.kind == "b" and method == "mean")
]


def mean(window):
    if window.dtype.kind in "iu":
        # Python rounds fractions half to even.
        return round(Fraction(sum(map(int, window.flat)), window.size))
    total = 0.0
    present = window[~numpy.isnan(window)]
    for number in present.astype("float64").flat:
        total += number
    return numpy.float64(total / present.size if present.size else math.nan).astype(window.dtype)


def mode(window):
    found, counts = numpy.unique(window[~numpy.isnan(window)] if window.dtype.kind == "f" else window, return_counts=True)
    return found[counts.argmax()] if found.size else math.nan


METHODS = {
    "mean": mean,
    "min": lambda window: numpy.fmin.reduce(window.ravel()),
    "max": lambda window: numpy.fmax.reduce(window.ravel()),
    "mode": mode,
    "stride": lambda window: window.flat[0],
}


def reduced(values, factors, method):
    """Window by window."""
    shape = [-(-length // factor) for length, factor in zip(values.shape, factors, strict=True)]
    result = numpy.empty(shape, values.dtype.newbyteorder("="))
    for place in itertools.product(*map(range, shape)):
        window = tuple(slice(at * factor, (at + 1) * factor) for at, factor in zip(place, factors, strict=True))
        result[place] = METHODS[method](values[window].astype(values.dtype.newbyteorder("=")))
    return result


@pytest.mark.parametrize(("name", "factors", "method"), CASES)
def test_windows_are_reduced_as_exact_arithmetic_reduces_them(server, mount, name, factors, method):
    query = {"downsample": ",".join(map(str, factors)), "method": method, "format": "npy"}
    answer = requests.get(server.data(mount, path(name)), params=query, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    header = answer.content.index(b"\n") + 1
    expected = reduced(ARRAYS[name].values, factors, method)
    found = numpy.frombuffer(answer.content[header:], expected.dtype.newbyteorder("<")).reshape(expected.shape)
    numpy.testing.assert_array_equal(found, expected)
    assert answer.headers["Array-Downsample"] == query["downsample"]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_statistics_are_those_of_numpy(server, mount, name):
    values = ARRAYS[name].values.astype(ARRAYS[name].values.dtype.newbyteorder("=")).ravel()
    query = {"histogram": 16, "percentiles": "0,2,50,97.5,100"}
    url = server.data(mount, path(name)).replace("/v1/data/", "/v1/stats/")
    answer = requests.get(url, params=query, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    present = values[~numpy.isnan(values)] if values.dtype.kind == "f" else values
    assert found["count"] == present.size
    assert found["nan"] == values.size - present.size
    assert found["exact"] is True
    if values.dtype.kind != "f":
        assert (found["min"], found["max"]) == (int(present.min()), int(present.max()))
        assert found["sum"] == sum(map(int, present))
    doubles = present.astype("float64")
    # Exact arithmetic: numpy rounds each sum on the way.
    total = sum(map(Fraction, present.tolist()))
    assert found["mean"] == float(total / present.size)
    if values.dtype.kind == "f":
        assert found["sum"] == float(total)
    assert math.isclose(found["std"], doubles.std(), rel_tol=1e-9)
    for percent, percentile in found["percentiles"].items():
        assert math.isclose(percentile, numpy.percentile(doubles, float(percent)), rel_tol=1e-12, abs_tol=1e-12)
    assert sum(found["histogram"]["counts"]) == present.size
