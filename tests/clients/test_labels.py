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
    "unsorted_repeated": rng.permutation(numpy.repeat(numpy.arange(0, 30, 2, dtype="int64"), 3)),
    "unsorted_floats": rng.permutation(numpy.arange(0, 10, 0.25)),
    "one": numpy.array([7.0]),
}
"""Coordinates that are numbers."""
PACKED = {"packed": (numpy.arange(240, 100, -4, dtype="int16"), {"scale_factor": 0.25, "add_offset": -10.0})}
STATIONS = ["KBOS", "KJFK", "KLAX", "KSEA", "PANC", "été"]


NUMPY_TIMES = [(2, "s"), (2, "ns"), (3, "s"), (3, "ms"), (3, "us"), (3, "ns")]
"""Formats and units of times that have a type of their own."""


def tree():
    """A hierarchy whose groups have some of the coordinates of their arrays, and the groups above the others."""
    numbers = numpy.random.default_rng(SEED + 2)
    lat, lon = numpy.arange(60, 28, -2.5), numpy.arange(0, 360, 7.5)
    time = pandas.date_range("2000-01-15", periods=40, freq="12h")

    def variable(*dimensions):
        lengths = {"lat": lat.size, "lon": lon.size, "time": time.size, "level": 5, "station": 4}
        return dimensions, numbers.integers(0, 1000, [lengths[name] for name in dimensions], dtype="int32")

    root = xarray.Dataset({"height": variable("lat", "lon")}, {"lat": lat, "lon": lon})
    model = xarray.Dataset({"rain": variable("time", "lat", "lon")}, {"time": time})
    levels = xarray.Dataset({"wind": variable("time", "level", "lat")}, {"level": [1000, 850, 500, 200, 50]})
    stations = xarray.Dataset({"rain": variable("station", "time")}, {"station": ["KSEA", "KBOS", "KSEA2", "été"]})
    return xarray.DataTree.from_dict({"/": root, "/model": model, "/model/levels": levels, "/model/stations": stations})


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
    for version, unit in NUMPY_TIMES:
        write(folder, f"numpy-{unit}-{version}", version, "time", times.astype(f"datetime64[{unit}]"), {})
    for version in (2, 3):
        tree().to_zarr(folder / f"tree-{version}", zarr_format=version, consolidated=False)
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


COMPARED = []
"""Each comparison with xarray."""


def compare(answer, wanted, what, squeezes=False):
    COMPARED.append(what)
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
    for _ in range(EACH * 2):
        query, select = numeric(draw, labels)
        if labels.dtype.kind == "u" and query.startswith("nearest"):
            # pandas subtracts without a sign: the nearest to 20 of 0 and 77 is 77.
            continue
        if "repeated" in name and (query.startswith(("nearest", "ffill", "bfill")) or query == "latest"):
            # pandas has no such selection of labels that are repeated.
            continue
        wanted = expected(lambda: select(dataset.v))
        if not monotonic and ".." in query:
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
            asked, ends = draw.sample([label, other], 2), sorted([label, other])
            # The earlier end may be the last; of a period and what lies in it, neither is the earlier one.
            ends = asked if ends[1].startswith(ends[0]) else ends
            query = "..".join(asked)
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


@pytest.mark.parametrize("version, unit", NUMPY_TIMES)
def test_times_of_numpy_select_what_xarray_selects(running, session, folder, version, unit):
    name = f"numpy-{unit}-{version}"
    draw = random.Random(f"{SEED} {name}")
    dataset = opened(folder, name)
    for _ in range(EACH):
        label = date(draw, "standard", dataset.time.values)
        wanted = expected(lambda: dataset.v.sel(time=label))
        compare(ask(running, session, name, **{"sel.time": label}), wanted, (name, label), squeezes=True)


def test_texts_select_what_xarray_selects(running, session, folder):
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


def test_ranges_of_longitudes_go_around_in_either_convention(running, session, folder):
    draw = random.Random(f"{SEED} ranges")
    dataset = opened(folder, "longitudes-3")
    labels = dataset.x.values
    for _ in range(EACH):
        start, end = (draw.choice([draw.randrange(-180, 540, 5), round(draw.uniform(-180, 540), 1)]) for _ in range(2))
        if (end - start) % 360 == 0:
            continue
        # From one end to the east until the other; more than a full turn is everything, as it is stored.
        eastward = (labels - start) % 360
        inside = numpy.flatnonzero(eastward <= (end - start) % 360)
        order = inside[numpy.argsort(eastward[inside], kind="stable")]
        wanted = dataset.v[order if end - start < 360 else slice(None)].values
        answer = ask(running, session, "longitudes-3", wrap=360, **{"sel.x": f"{start}..{end}"})
        compare(answer, wanted, (start, end))


@pytest.mark.parametrize("version", [2, 3])
def test_coordinates_of_groups_above_are_those_that_xarray_inherits(running, session, folder, version):
    draw = random.Random(f"{SEED} {version}")
    name = f"tree-{version}"
    with xarray.open_datatree(folder / name, engine="zarr", consolidated=False) as opened_tree:
        whole = opened_tree.load()
    for path in ["height", "model/rain", "model/levels/wind", "model/stations/rain"]:
        group, _, variable = path.rpartition("/")
        array = (whole[group] if group else whole)[variable]
        for _ in range(EACH):
            query, one, near = {}, {}, {}
            for dimension in draw.sample(array.dims, draw.randint(1, array.ndim)):
                labels = array[dimension].values
                label = draw.choice(list(labels))
                match draw.choice(["exact", "position"] if dimension in ("station", "time") else ["exact", "nearest", "none", "position"]):
                    case "exact":
                        query[f"sel.{dimension}"] = one[dimension] = as_text(label)
                    case "nearest":
                        away = round(float(label) + draw.uniform(-3, 3), 2)
                        query[f"sel.{dimension}"], near[dimension] = f"nearest(inf)::{away}", away
                    case "none":
                        query[f"sel.{dimension}"] = one[dimension] = float(label) + 0.125
                    case "position":
                        query[f"isel.{dimension}"] = place = draw.randrange(labels.size)
                        one[dimension] = labels[place]
            exact = {at: label if isinstance(label, str) and at == "station" else typed(array, at, label) for at, label in one.items()}
            wanted = expected(lambda: array.sel(exact).sel(near, method="nearest") if near else array.sel(exact))
            answer = session.get(f"{running.data('m', name)}/{path}", params=query | {"format": "npy"}, timeout=SECONDS)
            compare(answer, wanted, (name, path, query))


def as_text(label):
    """A label as a query has it."""
    return str(label.astype("datetime64[s]")) if isinstance(label, numpy.datetime64) else str(label)


def typed(array, dimension, label):
    """A label of a query as xarray takes it to be one element."""
    kind = array[dimension].dtype.kind
    return numpy.datetime64(label) if kind == "M" else float(label) if kind in "fi" else label


def test_headers_and_problems_name_what_was_taken(running, session):
    answer = ask(running, session, "days-standard-3", **{"sel.time": "2000-01", "sel.member": 20})
    assert answer.headers["Array-Selection"] == "time=7:38, member=1"
    assert answer.headers["Array-Labels"] == "member=20"
    answer = ask(running, session, "descending-3", **{"sel.x": "nearest::99"})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["dimension"]) == (400, "no-such-label", "x")
    assert (problem["first"], problem["last"], problem["step"], problem["nearest"]) == ("60", "-60", "-2.5", ["60"])


def test_there_are_at_least_3000_comparisons(request):
    ours = {item.originalname for item in request.session.items if item.module is request.module}
    everything = {name for name in dir(request.module) if name.startswith("test_")}
    # A run of some of the tests has fewer.
    assert ours != everything or len(COMPARED) >= 3000, len(COMPARED)
