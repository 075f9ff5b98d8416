"""`decode=cf` gives the values of xarray, in its types, and the dates of cftime in every calendar."""

import io
import random
import warnings

import cftime
import numpy
import pytest
import requests
import xarray
import zarr
from xarray.backends.zarr import FillValueCoder

import processes
from processes import SECONDS

SEED = 20261124
VARIABLES = 150
"""Variables of each version of Zarr."""
NUMBERS = 2500
"""Times of each unit in each calendar."""

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
REFORMED = "reformed"
"""A group with dates of `standard` before and after the reform of 1582."""
UNITS = {
    "days": ("days since 0001-01-01", "float64", 1_000_000),
    "hours": ("hours since 1850-06-15 12:00:00", "int32", 4_000_000),
    "seconds": ("seconds since 2000-02-28 23:59:59", "int64", 200_000_000_000),
    "milliseconds": ("milliseconds since 1999-12-30T00:00:00Z", "float64", 10_000_000_000_000),
}
"""Units, the type of numbers, and how large they are."""


def attributes_of(draw, data_type, version):
    """Random attributes of a packed or masked variable, as files have them."""
    attributes = {}
    kind = data_type.kind

    def number():
        return float(draw.randint(-3, 9)) + draw.choice([0, 0.5]) if kind == "f" else draw.randint(0 if kind == "u" else -3, 9)

    if draw.random() < 0.5:
        fill = numpy.nan if kind == "f" and draw.random() < 0.4 else number()
        attributes["_FillValue"] = FillValueCoder.encode(fill, data_type) if kind == "f" and version == 3 else fill
    if draw.random() < 0.3:
        attributes["missing_value"] = number()
    if draw.random() < 0.4:
        attributes["scale_factor"] = draw.choice([0.1, 0.5, 2.0, 1e-3])
    if draw.random() < 0.4:
        attributes["add_offset"] = draw.choice([273.15, -1.0, 0.1])
    # With `_Unsigned`, xarray compares a `missing_value` as it is written, and here it is that of the same bytes.
    if kind in "iu" and draw.random() < 0.3 and not attributes.keys() & {"_FillValue", "missing_value"}:
        attributes["_Unsigned"] = draw.choice(["true", "false"])
    return attributes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    draw, numbers = random.Random(SEED), numpy.random.default_rng(SEED)
    for version in (2, 3):
        group = zarr.create_group(folder / f"v{version}", zarr_format=version)
        for place in range(VARIABLES):
            data_type = numpy.dtype(draw.choice(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]))
            values = numbers.integers(0 if data_type.kind == "u" else -3, 10, 24).astype(data_type)
            attributes = attributes_of(draw, data_type, version)
            options = {"fill_value": None if version == 2 else 0}
            if version == 2:
                # xarray writes the attribute as Zarr's own fill value.
                fill = attributes.pop("_FillValue", None)
                attributes["_ARRAY_DIMENSIONS"] = [f"d{place}"]
                options["fill_value"] = fill
            else:
                options["dimension_names"] = [f"d{place}"]
            group.create_array(f"a{place}", data=values, chunks=(7,), attributes=attributes, **options)
    for calendar in [*CALENDARS, REFORMED]:
        group = zarr.create_group(folder / calendar)
        for name, (units, data_type, most) in UNITS.items():
            low = 0 if name == "days" else -most
            values = numbers.integers(low, most, NUMBERS).astype(data_type)
            if data_type == "float64":
                values += numpy.round(numbers.random(NUMBERS), 3) if name == "days" else numbers.integers(0, 4, NUMBERS) / 4
            if name != "days" and calendar == "standard":
                # numpy has no dates of the Julian calendar.
                values = numpy.maximum(values, cftime.date2num(cftime.datetime(1600, 1, 1, calendar=calendar), units, calendar))
            attributes = {"units": units} if calendar == REFORMED else {"units": units, "calendar": calendar}
            group.create_array(name, data=values, dimension_names=(name,), attributes=attributes)
    return folder


@pytest.fixture(scope="module")
def running(folder):
    with processes.zarrd(f"m={folder}") as running:
        yield running


def decoded(running, path, form):
    answer = requests.get(f"{running.data('m', path)}?decode=cf&format={form}", timeout=SECONDS)
    assert answer.status_code == 200, (path, answer.text)
    return numpy.load(io.BytesIO(answer.content)) if form == "npy" else answer.json()


@pytest.mark.parametrize("version", [2, 3])
def test_values_and_their_types_are_those_of_xarray(running, folder, version):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = xarray.open_zarr(folder / f"v{version}", consolidated=False, decode_times=False)
        expected = {name: dataset[name].values for name in dataset.variables}
    assert len(expected) == VARIABLES
    for name, values in expected.items():
        attributes = zarr.open_array(folder / f"v{version}" / name, mode="r").attrs.asdict()
        numpy.testing.assert_array_equal(decoded(running, f"v{version}/{name}", "npy"), values, err_msg=f"{name} {attributes}", strict=True)


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("name", UNITS)
def test_dates_are_those_of_cftime(running, folder, calendar, name):
    compare(running, folder, calendar, name, calendar)


@pytest.mark.parametrize("name", UNITS)
def test_dates_of_standard_before_its_reform_are_those_of_cftime_whatever_they_count_from(running, folder, name):
    compare(running, folder, REFORMED, name, "standard")


def compare(running, folder, group, name, calendar):
    numbers = zarr.open_array(folder / group / name, mode="r")[:]
    expected = cftime.num2date(numbers, UNITS[name][0], calendar, only_use_cftime_datetimes=True)
    found = decoded(running, f"{group}/{name}", "json")
    assert len(found) == NUMBERS
    for date, text in zip(expected, found, strict=True):
        written, _, fraction = text.partition(".")
        year, rest = written.split("-", 1) if written[0] not in "+-" else (written[:7], written[8:])
        assert (int(year), rest) == (date.year, date.strftime("%m-%dT%H:%M:%S")), (date, text)
        assert (fraction + "000000")[:6] == f"{date.microsecond:06}", (date, text)


@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian"])
def test_times_of_the_gregorian_calendar_are_those_of_numpy(running, folder, calendar):
    for name in ("hours", "seconds", "milliseconds"):
        dataset = xarray.open_zarr(folder / calendar, consolidated=False, decode_times=xarray.coders.CFDatetimeCoder(time_unit="us"))
        found = decoded(running, f"{calendar}/{name}", "npy")
        assert found.dtype == "datetime64[us]"
        numpy.testing.assert_array_equal(found, dataset[name].values.astype("datetime64[us]"), err_msg=name)


def test_times_of_other_calendars_stay_numbers_where_numpy_has_no_dates(running, folder):
    numbers = zarr.open_array(folder / "360_day" / "seconds", mode="r")[:]
    numpy.testing.assert_array_equal(decoded(running, "360_day/seconds", "npy"), numbers)
