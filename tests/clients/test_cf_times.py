"""Times in every calendar and unit are the dates of cftime, and dates select the times that cftime has for them."""

import pytest
import requests

import cf_times
import processes

COUNT = 400
"""Times of each unit in each calendar."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cf") / "times"
    dates = cf_times.write(folder, COUNT)
    with processes.zarrd(f"m={folder}") as running, requests.Session() as session:
        yield session, running.base, dates


@pytest.mark.parametrize("unit, calendar", cf_times.CASES)
def test_numbers_are_the_dates_of_cftime_and_dates_its_numbers(served, unit, calendar):
    session, base, dates = served
    assert cf_times.compare(session, base, unit, calendar, dates[unit, calendar]) > COUNT // 2
