"""Random times of every calendar and unit, compared with cftime in both directions: numbers as dates, and dates as labels.

Run by hand for many more than a test has, with the server in ZARRD:

    python tests/clients/cf_times.py 100000
"""

import io
import itertools
import pathlib
import sys
import tempfile
import time

import cftime
import numpy
import requests
import zarr

import processes
from processes import SECONDS

SEED = 20261125
CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "366_day", "360_day"]
UNITS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 1e-3, "microseconds": 1e-6}
"""Units that cftime has in each calendar, in seconds."""
CASES = [*itertools.product(UNITS, CALENDARS), ("months", "360_day")]
ORIGINS = ["1900-01-01", "1582-10-15 12:00:00", "1-1-1", "2000-02-28T23:59:59", "1850-06-15 06:30:00Z"]
YEARS = 4000
"""How far from its origin a time may be."""


def times(unit, calendar, count):
    """Different random numbers in ascending order, their units, and the dates that cftime has for them."""
    rng = numpy.random.default_rng([SEED, sum(map(ord, unit + calendar))])
    origin = ORIGINS[int(rng.integers(len(ORIGINS)))]
    length = UNITS.get(unit, 30 * 86_400)
    reach = int(YEARS * 360 * 86_400 / length)
    units = f"{unit} since {origin}"
    # Dates before the year 1 have a year 0 in some calendars and none in others.
    low = 0 if origin.startswith("1-") else -int(1000 * 360 * 86_400 / length)
    if calendar in ("standard", "gregorian") and not origin.startswith("1-"):
        # Of an origin in the Gregorian calendar, dates before that are written in it too, as ISO 8601 has them.
        low = int(cftime.date2num(cftime.datetime(1582, 10, 16, calendar=calendar), units, calendar))
    numbers = numpy.unique(rng.integers(low, reach, count * 2, dtype="int64"))
    numbers = numpy.sort(rng.choice(numbers, min(count, numbers.size), replace=False))
    return numbers, units, cftime.num2date(numbers, units, calendar, only_use_cftime_datetimes=True)


def text(date):
    """A date in ISO 8601, to the microsecond."""
    whole = f"{date.year:04}-{date.month:02}-{date.day:02}T{date.hour:02}:{date.minute:02}:{date.second:02}"
    return f"{whole}.{date.microsecond:06}"


def whole(written):
    """A date of a response with six digits of a second."""
    seconds, _, fraction = written.partition(".")
    return f"{seconds}.{fraction:0<6}"


def write(folder, count):
    """An array of its own times in each unit and calendar; returns the dates of each."""
    root = zarr.create_group(folder, zarr_format=3)
    dates = {}
    for unit, calendar in CASES:
        numbers, units, dates[unit, calendar] = times(unit, calendar, count)
        name = f"{unit}-{calendar}"
        attributes = {"units": units, "calendar": calendar}
        root.create_group(name).create_array("t", data=numbers, dimension_names=("t",), attributes=attributes, chunks=(numbers.size,))
    return dates


def compare(session, base, unit, calendar, dates):
    """Asserts that each number has the date of cftime, and each date the number; returns how many were compared."""
    url = f"{base}/v1/data/m/{unit}-{calendar}/t"
    answer = session.get(url, params={"decode": "cf", "format": "json"}, timeout=SECONDS)
    assert answer.status_code == 200, (unit, calendar, answer.text[:500])
    expected = [text(date) for date in dates]
    found = [whole(written) for written in answer.json()]
    assert found == expected, (unit, calendar, next(pair for pair in zip(found, expected) if pair[0] != pair[1]))
    # As precise as a label can be, so that it is one time and no period.
    selection = {"sel": {"t": expected}, "format": "npy"}
    answer = session.post(url, json=selection, timeout=SECONDS)
    assert answer.status_code == 200, (unit, calendar, answer.text[:500])
    numbers = numpy.load(io.BytesIO(session.get(url, params={"format": "npy"}, timeout=SECONDS).content))
    numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), numbers, err_msg=f"{unit} {calendar}")
    return len(expected)


def main(count):
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / "times"
        dates = write(folder, count)
        with processes.zarrd(f"m={folder}") as running, requests.Session() as session:
            total = 0
            for (unit, calendar), of_case in dates.items():
                compared = compare(session, running.base, unit, calendar, of_case)
                total += compared
                print(f"{unit} in {calendar}: {compared:,} each way", flush=True)
    print(f"{total:,} dates each way, {len(dates)} pairs of unit and calendar, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
