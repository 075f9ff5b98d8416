"""`sel.NAME=` selects what xarray selects by the same labels, and refuses what xarray refuses."""

import io
import random
import urllib.parse

import numpy
import pandas
import pytest
import requests
import xarray
import zarr

import processes
from processes import SECONDS

SEED = 20261124
EACH = 45
"""Selections of each dimension of each dataset."""

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
UNITS = {
    "days": ("days since 1999-12-25", numpy.arange(0, 160, dtype="int64")),
    "noons": ("hours since 2000-01-01 00:00:00", numpy.arange(12, 12 + 24 * 90, 24, dtype="int32")),
    "quarters": ("hours since 1999-1-1", numpy.arange(8400, 8400 + 6 * 300, 6, dtype="float64")),
    "halves": ("days since 2000-02-01", numpy.arange(0, 40, 0.5, dtype="float64")),
    "minutes": ("seconds since 2000-02-28T22:00:00Z", numpy.arange(0, 60 * 90 * 3, 90, dtype="int64")),
}
"""Units and numbers of time coordinates."""

rng = numpy.random.default_rng(SEED)
NUMBERS = {
    "ascending": numpy.round(numpy.arange(-30, 30.01, 0.75), 6),
    "descending": numpy.arange(60, -60.1, -2.5),
    "single": numpy.arange(45, 46, 0.1, dtype="float32"),
    "single_descending": numpy.arange(46, 45, -0.05, dtype="float32"),
    "irregular": numpy.sort(numpy.round(rng.uniform(-5, 5, 40), 3)),
    "integers": numpy.arange(-20, 40, 3, dtype="int32"),
    "unsigned": numpy.arange(0, 4000, 77, dtype="uint16"),
    "repeated": numpy.repeat(numpy.arange(0, 40, 4, dtype="int64"), 3),
    "unsorted": rng.permutation(numpy.arange(0, 60, 2, dtype="int64")),
    "longitudes": numpy.arange(0, 360, 2.5),
    "one": numpy.array([7.0]),
}
"""Coordinates that are numbers."""
PACKED = {"packed": (numpy.arange(240, 100, -4, dtype="int16"), {"scale_factor": 0.25, "add_offset": -10.0})}
STATIONS = ["KBOS", "KJFK", "KLAX", "KSEA", "PANC", "été"]


def write(folder, name, version, coordinate, labels, attributes, data_type=None):
    """A dataset with a variable whose elements are their positions."""
    group = zarr.create_group(folder / name, zarr_format=version)
    options = {} if version == 3 else {"fill_value": None}

    def put(name, values, dimensions, attributes, **more):
        named = {"dimension_names": dimensions} if version == 3 else {}
        noted = attributes | ({} if version == 3 else {"_ARRAY_DIMENSIONS": list(dimensions)})
        group.create_array(name, data=values, attributes=noted, **named, **options, **more)

    put(coordinate, labels, (coordinate,), attributes, chunks=(max(1, (len(labels) + 2) // 3),))
    values = numpy.arange(len(labels) * 3, dtype="int32").reshape(len(labels), 3)
    put("v", values, (coordinate, "member"), {}, chunks=(7, 2))
    put("member", numpy.array([10, 20, 30], dtype="int8"), ("member",), {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    for version in (2, 3):
        for name, labels in NUMBERS.items():
            write(folder, f"{name}-{version}", version, "x", labels, {})
        for name, (labels, attributes) in PACKED.items():
            write(folder, f"{name}-{version}", version, "x", labels, attributes)
        for calendar in CALENDARS:
            for name, (units, numbers) in UNITS.items():
                write(folder, f"{name}-{calendar}-{version}", version, "time", numbers, {"units": units, "calendar": calendar})
    times = numpy.arange("2000-02-27", "2000-03-03", numpy.timedelta64(6, "h"), dtype="datetime64[s]")
    write(folder, "numpy-3", 3, "time", times, {})
    texts = xarray.Dataset({"v": (("station", "member"), numpy.arange(18).reshape(6, 3))}, {"station": STATIONS, "member": [10, 20, 30]})
    texts.to_zarr(folder / "texts-3", zarr_format=3, consolidated=False)
    texts.to_zarr(folder / "texts-2", zarr_format=2, consolidated=False)
    return folder


@pytest.fixture(scope="module")
def running(folder):
    with processes.zarrd(f"m={folder}") as running:
        yield running


@pytest.fixture(scope="module")
def session():
    with requests.Session() as session:
        yield session


def opened(folder, name):
    return xarray.open_zarr(folder / name, consolidated=False, decode_timedelta=False).load()


def ask(running, session, name, **selection):
    query = urllib.parse.urlencode(selection | {"format": "npy"})
    return session.get(f"{running.data('m', name)}/v?{query}", timeout=SECONDS)


def elements(answer):
    return numpy.load(io.BytesIO(answer.content))


def expected(select):
    """What xarray selects; `None` if it refuses."""
    try:
        return select().values
    except (KeyError, ValueError, TypeError, pandas.errors.InvalidIndexError):
        return None


def compare(answer, wanted, what, squeezes=False):
    if wanted is None:
        assert answer.status_code == 400, (what, answer.status_code, answer.headers)
        problem = answer.json()
        assert "`sel." in problem["detail"] or "not sorted" in problem["detail"], (what, problem)
        return
    assert answer.status_code == 200, (what, answer.text)
    found = elements(answer)
    if squeezes:
        # A date as precise as the labels is one label here, and a range to pandas if times have a smaller unit.
        assert found.shape in (wanted.shape, wanted.shape[1:]), (what, found.shape, wanted.shape)
        found = found.reshape(wanted.shape)
    numpy.testing.assert_array_equal(found, wanted, err_msg=str(what), strict=True)


def numeric(draw, labels):
    """A random query of numbers, and the same for xarray."""
    low, high = float(labels.min()), float(labels.max())
    span = high - low or 1.0
    one = draw.choice(labels.tolist()) if labels.dtype != numpy.float32 else float(str(draw.choice(list(labels))))
    off = round(draw.uniform(low - span / 4, high + span / 4), 2)
    other = round(draw.uniform(low - span / 4, high + span / 4), 2)
    label = draw.choice([one, off])
    whole = numpy.issubdtype(labels.dtype, numpy.integer)
    if whole:
        label, other = int(label), int(other)
    kind = draw.choice(["exact", "exact", "nearest", "tolerance", "ffill", "bfill", "range", "range", "latest"])
    descends = bool(labels[0] > labels[-1])
    match kind:
        case "exact":
            return f"{label}", lambda x: x.sel(x=label)
        case "nearest":
            return f"nearest(inf)::{label}", lambda x: x.sel(x=label, method="nearest")
        case "tolerance":
            tolerance = round(span / 50, 3)
            return f"nearest({tolerance})::{label}", lambda x: x.sel(x=label, method="nearest", tolerance=tolerance)
        case "ffill" | "bfill":
            return f"{kind}::{label}", lambda x: x.sel(x=label, method=kind)
        case "range":
            # Here an end is rounded as the labels are.
            ends = [labels.dtype.type(end) if labels.dtype == "float32" else end for end in sorted([label, other], reverse=descends)]
            return draw.choice([f"{label}..{other}", f"{other}..{label}"]), lambda x: x.sel(x=slice(*ends))
        case "latest":
            return "latest", lambda x: x.isel(x=int(numpy.flatnonzero(labels == labels.max())[-1]))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", [*NUMBERS, *PACKED])
def test_numbers_select_what_xarray_selects(running, session, folder, name, version):
    name = f"{name}-{version}"
    draw = random.Random(f"{SEED} {name}")
    dataset = opened(folder, name)
    labels = dataset.x.values
    monotonic = dataset.indexes["x"].is_monotonic_increasing or dataset.indexes["x"].is_monotonic_decreasing
    unique = dataset.indexes["x"].is_unique
    for _ in range(EACH * 2):
        query, select = numeric(draw, labels)
        if labels.dtype.kind == "u" and query.startswith("nearest"):
            # pandas subtracts without a sign: the nearest to 20 of 0 and 77 is 77.
            continue
        if "repeated" in name and (query.startswith(("nearest", "ffill", "bfill")) or query == "latest"):
            # pandas has no such selection of labels that are repeated.
            continue
        wanted = expected(lambda: select(dataset.v))
        if not monotonic and unique and ".." in query:
            wanted = None
        compare(ask(running, session, name, **{"sel.x": query}), wanted, (name, query))


def date(draw, calendar, times):
    """A random date near some times, as text of random precision."""
    at = draw.choice(list(times))
    text = at.isoformat() if hasattr(at, "isoformat") else str(at.astype("datetime64[s]"))
    cut = draw.choice([4, 7, 7, 10, 10, 10, 13, 16, 19])
    text = text[:cut]
    if draw.random() < 0.3:
        text = text.replace("2000-01", "1999-11").replace("2000-02", draw.choice(["2000-03", "2000-04", "2001-02"]))
    return text


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("name", UNITS)
def test_dates_select_what_xarray_selects(running, session, folder, name, calendar, version):
    name = f"{name}-{calendar}-{version}"
    draw = random.Random(f"{SEED} {name}")
    dataset = opened(folder, name)
    times = dataset.indexes["time"]
    listed = list(times)
    spacing = listed[1] - listed[0]
    for _ in range(EACH // 2):
        kind = draw.choice(["exact", "exact", "range", "nearest", "latest"])
        label = date(draw, calendar, dataset.time.values)
        if kind == "exact":
            wanted = expected(lambda: dataset.v.sel(time=label))
            answer = ask(running, session, name, **{"sel.time": label})
            if wanted is not None and wanted.size == 0 and answer.status_code == 400:
                # Of `cftime` xarray takes every date as a range; one as precise as the labels is one of them.
                assert answer.json()["code"] == "no-such-label" and len(label) >= 10, (name, label)
                continue
            compare(answer, wanted, (name, label), squeezes=True)
        elif kind == "range":
            other = date(draw, calendar, dataset.time.values)
            ends = sorted([label, other])
            begin_together = len({end + "0000-01-01T00:00:00"[len(end):] for end in ends}) == 1
            query = "..".join(ends if begin_together else draw.sample(ends, 2))
            wanted = expected(lambda: dataset.v.sel(time=slice(*ends)))
            compare(ask(running, session, name, **{"sel.time": query}), wanted, (name, query))
        elif kind == "nearest":
            at = draw.choice(listed) + spacing * round(draw.uniform(-0.9, 0.9), 2)
            at = at.floor("s") if hasattr(at, "floor") else at.replace(microsecond=0)
            wanted = expected(lambda: dataset.v.sel(time=at, method="nearest"))
            query = f"nearest(inf)::{at.isoformat()}"
            compare(ask(running, session, name, **{"sel.time": query}), wanted, (name, query))
        else:
            compare(ask(running, session, name, **{"sel.time": "latest"}), dataset.v[-1].values, (name, kind))


def test_times_of_numpy_and_texts_select_what_xarray_selects(running, session, folder):
    draw = random.Random(SEED)
    dataset = opened(folder, "numpy-3")
    for _ in range(EACH):
        label = date(draw, "standard", dataset.time.values)
        wanted = expected(lambda: dataset.v.sel(time=label))
        compare(ask(running, session, "numpy-3", **{"sel.time": label}), wanted, label, squeezes=True)
    for name in ("texts-2", "texts-3"):
        dataset = opened(folder, name)
        for station in [*STATIONS, "KSAE", "été "]:
            station = station.strip()
            wanted = expected(lambda: dataset.v.sel(station=station))
            compare(ask(running, session, name, **{"sel.station": station}), wanted, (name, station))
        for start, end in [("KB", "KM"), ("L", "Z"), ("KJFK", "KLAX")]:
            wanted = dataset.v.sel(station=slice(start, end)).values
            compare(ask(running, session, name, **{"sel.station": f"{start}..{end}"}), wanted, (name, start, end))


def test_labels_and_positions_stand_together_on_different_dimensions(running, session, folder):
    draw = random.Random(SEED)
    for name in ["ascending-3", "descending-2", "integers-3"]:
        dataset = opened(folder, name)
        for _ in range(EACH):
            query, select = numeric(draw, dataset.x.values)
            member, place = draw.choice([10, 20, 30]), draw.choice([0, -1])
            wanted = expected(lambda: select(dataset.v).sel(member=member))
            compare(ask(running, session, name, **{"sel.x": query, "sel.member": member}), wanted, (name, query, member))
            wanted = expected(lambda: select(dataset.v).isel(member=place))
            compare(ask(running, session, name, **{"sel.x": query, "isel.member": place}), wanted, (name, query, place))


def test_longitudes_are_found_in_either_convention(running, session, folder):
    draw = random.Random(SEED)
    dataset = opened(folder, "longitudes-3")
    for _ in range(EACH):
        label = draw.choice([draw.choice(range(-180, 181, 5)), round(draw.uniform(-180, 180), 2)])
        # The nearest around the circle.
        away = (dataset.x.values - label) % 360
        away = numpy.minimum(away, 360 - away)
        if numpy.sum(away == away.min()) > 1:
            continue
        wanted = dataset.v[int(away.argmin())].values
        compare(ask(running, session, "longitudes-3", wrap=360, **{"sel.x": f"nearest::{label}"}), wanted, label)
        exact = ask(running, session, "longitudes-3", wrap=360, **{"sel.x": str(label)})
        compare(exact, wanted if away.min() == 0 else None, label)


def test_headers_and_problems_name_what_was_taken(running, session):
    answer = ask(running, session, "days-standard-3", **{"sel.time": "2000-01", "sel.member": 20})
    assert answer.headers["Array-Selection"] == "time=7:38, member=1"
    assert answer.headers["Array-Labels"] == "member=20"
    answer = ask(running, session, "descending-3", **{"sel.x": "nearest::99"})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["dimension"]) == (400, "no-such-label", "x")
    assert (problem["first"], problem["last"], problem["step"], problem["nearest"]) == ("60", "-60", "-2.5", ["60"])
