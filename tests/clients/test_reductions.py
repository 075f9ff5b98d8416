"""`reduce.NAME=` and `/v1/stats?over=` compute what exact arithmetic computes, rounded once."""

import itertools
import math
from fractions import Fraction

import numpy
import pytest
import requests

from arrays import ARRAYS, path
from processes import SECONDS

STATISTICS = ["count", "nan", "missing", "min", "max", "mean", "std", "sum"]
CASES = [
    (name, axes)
    for name, array in ARRAYS.items()
    if array.values.size and array.values.dtype.kind in "biuf"
    for count in range(1, array.values.ndim + 1)
    for axes in itertools.combinations(range(array.values.ndim), count)
    # One number for each index of the dimensions that are left: enough, and not too slow for fractions.
    if math.prod(length for axis, length in enumerate(array.values.shape) if axis not in axes) <= 2000
]


def root(square):
    """The root of a fraction, rounded once."""
    # Enough bits that the last of them says whether there are more.
    scale = 1 << 2 * max(0, 64 + square.denominator.bit_length() - square.numerator.bit_length() // 2)
    whole = square.numerator * scale // square.denominator
    found = math.isqrt(whole)
    inexact = found * found * square.denominator != square.numerator * scale
    return float(Fraction(2 * found + inexact, 2 * math.isqrt(scale)))


def exact(group):
    """The statistics of a list of numbers."""
    numbers = [number for number in group if not math.isnan(number)]
    count = len(numbers)
    found = {"count": count, "nan": len(group) - count, "missing": 0}
    if not count:
        return found | dict.fromkeys(["min", "max", "mean", "std"], math.nan) | {"sum": 0.0}
    fractions = [Fraction(number) for number in numbers]
    total = sum(fractions)
    variance = sum(number * number for number in fractions) / count - (total / count) ** 2
    found |= {"min": min(numbers), "max": max(numbers), "mean": float(total / count), "std": root(variance)}
    return found | {"sum": int(total) if isinstance(numbers[0], int) else float(total)}


def groups(values, axes):
    """The elements of each index of the dimensions that are left, as numbers of Python."""
    kept = [axis for axis in range(values.ndim) if axis not in axes]
    shape = tuple(values.shape[axis] for axis in kept)
    rows = values.transpose([*kept, *axes]).reshape(math.prod(shape), -1)
    rows = rows.astype("int8") if rows.dtype.kind == "b" else rows
    return shape, [row.tolist() for row in rows.astype(rows.dtype.newbyteorder("="))]


def result_type(values, statistic):
    if statistic in ("count", "nan", "missing"):
        return numpy.dtype("<u8")
    if statistic in ("min", "max"):
        return values.dtype.newbyteorder("<")
    if statistic == "sum" and values.dtype.kind in "biu":
        return numpy.dtype("<u8" if values.dtype.kind == "u" else "<i8")
    return numpy.dtype("<f8")


@pytest.mark.parametrize(("name", "axes"), CASES)
def test_dimensions_are_reduced_as_exact_arithmetic_reduces_them(server, mount, name, axes):
    values = ARRAYS[name].values
    shape, rows = groups(values, axes)
    model = [exact(row) for row in rows]
    listed = ",".join(map(str, axes))
    for statistic in STATISTICS:
        query = {f"reduce.{listed}": statistic, "format": "npy"}
        answer = requests.get(server.data(mount, path(name)), params=query, timeout=SECONDS)
        data_type = result_type(values, statistic)
        expected = [one[statistic] for one in model]
        if statistic == "sum" and data_type.kind in "iu":
            limits = numpy.iinfo(data_type)
            if not all(limits.min <= number <= limits.max for number in expected):
                assert answer.status_code == 400, answer.text
                continue
        assert answer.status_code == 200, answer.text
        header = answer.content.index(b"\n") + 1
        found = numpy.frombuffer(answer.content[header:], data_type).reshape(shape)
        numpy.testing.assert_array_equal(found, numpy.array(expected, data_type).reshape(shape), statistic)


def nested(shape, flat):
    if not shape:
        return next(flat)
    return [nested(shape[1:], flat) for _ in range(shape[0])]


@pytest.mark.parametrize(("name", "axes"), CASES)
def test_nested_statistics_are_those_of_exact_arithmetic(server, mount, name, axes):
    values = ARRAYS[name].values
    shape, rows = groups(values, axes)
    url = server.data(mount, path(name)).replace("/v1/data/", "/v1/stats/")
    answer = requests.get(url, params={"over": ",".join(map(str, axes))}, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["shape"] == list(shape)
    model = [exact(row) for row in rows]
    for statistic in STATISTICS:
        expected = (None if isinstance(one[statistic], float) and math.isnan(one[statistic]) else one[statistic] for one in model)
        assert found[statistic] == nested(shape, expected), statistic
