"""Tables (`coords=1`) are those of `xarray.Dataset.to_dataframe`, read by pandas, pyarrow and DuckDB from a URL."""

import io
import random
import urllib.parse

import duckdb
import numpy
import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest
import requests
import xarray
import zarr

import processes
from processes import SECONDS

SEED = 20261125
EACH = 25
"""Selections of each dataset."""
CALENDARS = ["standard", "proleptic_gregorian", "noleap", "360_day"]
FORMATS = ["csv", "json", "arrow", "parquet"]

pytestmark = pytest.mark.filterwarnings("ignore")


def dataset(draw, calendar):
    """A dataset of three dimensions, of which the last has no coordinate."""
    rng = numpy.random.default_rng(draw.randrange(2**32))
    sizes = {"time": draw.randrange(2, 9), "place": draw.randrange(2, 7), "member": draw.randrange(1, 5)}
    shape = tuple(sizes.values())
    steps = numpy.cumsum(rng.integers(1, 90, sizes["time"])) / draw.choice([1, 2, 4])
    units = draw.choice(["days since 1999-12-25", "hours since 2000-02-27 06:00:00"])
    places = draw.choice([
        numpy.round(numpy.linspace(60, -60, sizes["place"]), 3),
        rng.permutation(numpy.arange(sizes["place"], dtype="int32")),
        numpy.array([f"st-{letter}, \"{letter}\"" for letter in "abcdefg"[: sizes["place"]]], dtype=object),
        numpy.linspace(45, 46, sizes["place"]).astype("float32"),
    ])
    numbers = rng.normal(0, 100, shape)
    numbers[rng.random(shape) < 0.2] = numpy.nan
    dimensions = tuple(sizes)
    return xarray.Dataset(
        {
            "floats": (dimensions, numbers.astype("float32")),
            "packed": (dimensions, numpy.round(numbers, 1)),
            "counts": (dimensions, rng.integers(-5, 5, shape)),
            "flags": (dimensions, rng.random(shape) < 0.5),
            "notes": (dimensions, numpy.array(["", "é,\"x\"", "line\nend"], dtype=object)[rng.integers(0, 3, shape)]),
        },
        {
            "time": ("time", steps, {"units": units, "calendar": calendar}),
            "place": ("place", places),
        },
    )


PACKED = {"dtype": "int32", "scale_factor": 0.1, "_FillValue": -2147483647}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    draw = random.Random(SEED)
    for version in (2, 3):
        for calendar in CALENDARS:
            for number in range(3):
                made = dataset(draw, calendar)
                chunks = tuple(draw.randrange(1, length + 1) for length in made.floats.shape)
                encoding = {name: {"chunks": chunks} for name in made.data_vars}
                encoding["packed"] |= PACKED
                name = f"{calendar}-{version}-{number}"
                made.to_zarr(folder / name, zarr_format=version, consolidated=False, encoding=encoding)
    return folder


@pytest.fixture(scope="module")
def running(folder):
    with processes.zarrd(f"m={folder}") as running:
        yield running


def read(url, format, times):
    if format == "csv":
        return pandas.read_csv(url, parse_dates=times, keep_default_na=True, na_values=[])
    if format == "json":
        return pandas.read_json(url, convert_dates=False)
    content = requests.get(url, timeout=SECONDS).content
    if format == "parquet":
        return pyarrow.parquet.read_table(io.BytesIO(content)).to_pandas()
    return pyarrow.ipc.open_stream(io.BytesIO(content)).read_all().to_pandas()


def selection(draw, sizes):
    """A random selection of positions, as a query and for xarray."""
    query, chosen = {}, {}
    for name, length in sizes.items():
        kind = draw.choice(["all", "index", "range", "list"])
        if kind == "index":
            chosen[name] = draw.randrange(length)
            query[f"isel.{name}"] = str(chosen[name])
        elif kind == "range":
            start, step = draw.randrange(length), draw.choice([1, 2, -1])
            chosen[name] = slice(start, None, step)
            query[f"isel.{name}"] = f"{start}::{step}"
        elif kind == "list":
            chosen[name] = [draw.randrange(length) for _ in range(draw.randrange(1, 4))]
            query[f"isel.{name}"] = ",".join(map(str, chosen[name])) + ","
    return query, chosen


def expected_of(stored, chosen):
    numbered = stored.assign_coords(member=numpy.arange(stored.sizes["member"])).isel(chosen)
    order = [name for name in stored.floats.dims if name in numbered.dims]
    if order:
        return numbered.to_dataframe(dim_order=order).reset_index()
    return pandas.DataFrame({name: [variable.values[()]] for name, variable in numbered.variables.items()})


def texts(times):
    """Times as text, as precise as seconds, so that those of all calendars compare."""
    return [time.isoformat()[:19] if hasattr(time, "isoformat") else str(time)[:19] for time in times]


def compare(found, expected, variables, what):
    assert list(found.columns) == ["time", "place", "member", *variables], what
    assert len(found) == len(expected), what
    assert texts(found["time"]) == texts(expected["time"]), what
    for name in ["place", "member", *variables]:
        one, other = found[name], expected[name]
        if other.dtype == object or other.dtype.kind in "OUT":
            # CSV has no word for an empty text that pandas does not take for a missing value.
            assert list(one.fillna("")) == [str(value) for value in other], (what, name)
        elif other.dtype.kind in "biu":
            numpy.testing.assert_array_equal(one, other, err_msg=str((what, name)))
        else:
            numpy.testing.assert_allclose(one.astype(float), other.astype(float), rtol=1e-6, err_msg=str((what, name)))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("calendar", CALENDARS)
def test_tables_are_those_of_xarray(running, folder, calendar, version, number):
    name = f"{calendar}-{version}-{number}"
    draw = random.Random(f"{SEED} {name}")
    stored = xarray.open_zarr(folder / name, consolidated=False, decode_timedelta=False).load()
    for _ in range(EACH):
        query, chosen = selection(draw, stored.floats.sizes)
        variables = draw.sample(sorted(stored.data_vars), draw.randrange(1, 4))
        format = draw.choice(FORMATS)
        query |= {"coords": "1", "format": format, "vars": ",".join(variables)}
        if format in ("arrow", "parquet"):
            query["decode"] = "cf"
        url = f"{running.data('m', name)}?{urllib.parse.urlencode(query)}"
        # Of an empty table no column has a type.
        found = read(url, format, ["time"] if "gregorian" in calendar or calendar == "standard" else [])
        if format in ("arrow", "parquet") and calendar in ("noleap", "360_day"):
            assert numpy.issubdtype(found["time"].dtype, numpy.number)
            expected = expected_of(xarray.open_zarr(folder / name, consolidated=False, decode_times=False).load(), chosen)
            found["time"], expected["time"] = found["time"].map(str), expected["time"].map(str)
        else:
            expected = expected_of(stored, chosen)
        compare(found, expected, variables, url)


def test_an_array_and_labels_are_a_table_too(running, folder):
    compared = 0
    for version in (2, 3):
        name = f"standard-{version}-0"
        stored = xarray.open_zarr(folder / name, consolidated=False).load()
        for time in stored.time.values:
            text = str(time)[:26]
            query = urllib.parse.urlencode({"coords": "1", "sel.time": text, "format": "csv"})
            found = pandas.read_csv(f"{running.data('m', name)}/floats?{query}", parse_dates=["time"])
            expected = stored[["floats"]].assign_coords(member=numpy.arange(stored.sizes["member"])).sel(time=time)
            compare(found, expected.to_dataframe(dim_order=["place", "member"]).reset_index(), ["floats"], text)
            compared += 1
    assert compared > 4


def test_times_of_arrow_have_their_type_or_their_units(running, folder):
    for calendar in CALENDARS:
        url = f"{running.data('m', f'{calendar}-3-1')}/counts?coords=1&format=arrow"
        answer = requests.get(url, timeout=SECONDS)
        assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
        field = pyarrow.ipc.open_stream(io.BytesIO(answer.content)).schema.field("time")
        if calendar in ("standard", "proleptic_gregorian"):
            assert field.type == pyarrow.timestamp("us")
        else:
            assert pyarrow.types.is_floating(field.type)
            assert field.metadata[b"calendar"].decode() == calendar and b" since " in field.metadata[b"units"]


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A table of several groups of rows, with a column of each type."""
    rng = numpy.random.default_rng(SEED)
    shape = (40, 50, 60)
    dimensions = ("t", "y", "x")
    made = {name: (dimensions, rng.integers(0, 2 if name == "bool" else 100, shape).astype(name)) for name in TYPES}
    made["text"] = (dimensions, rng.choice(["", "a", "é\u20ac"], shape).astype(object))
    days = rng.integers(-10**5, 10**5, shape).astype("datetime64[s]")
    days[rng.random(shape) < 0.1] = numpy.datetime64("NaT")
    made["when"] = (dimensions, days)
    at = tmp_path_factory.mktemp("long")
    group = zarr.create_group(at / "long", zarr_format=3)
    for name, (_, values) in made.items():
        kind = {"dtype": "string"} if name == "text" else {"dtype": values.dtype}
        array = group.create_array(name, shape=shape, chunks=(7, 20, 33), dimension_names=dimensions, **kind)
        array[...] = values
    for name, length in zip(dimensions, shape):
        group.create_array(name, data=numpy.arange(length) / 4, dimension_names=[name])
    with processes.zarrd(f"m={at}") as running:
        yield running, {name: values.reshape(-1) for name, (_, values) in made.items()}


STEPS = {
    "datetime64[Y]": "date32[day]", "datetime64[M]": "date32[day]", "datetime64[W]": "timestamp[ms]", "datetime64[D]": "date32[day]",
    "datetime64[h]": "timestamp[ms]", "datetime64[m]": "timestamp[ms]", "datetime64[30s]": "timestamp[ms]",
    "datetime64[ms]": "timestamp[ms]", "datetime64[10us]": "timestamp[us]", "datetime64[ns]": "timestamp[ns]",
    "timedelta64[W]": "duration[s]", "timedelta64[D]": "duration[s]", "timedelta64[h]": "duration[s]", "timedelta64[m]": "duration[s]",
    "timedelta64[s]": "duration[s]", "timedelta64[250ms]": "duration[ms]", "timedelta64[us]": "duration[us]", "timedelta64[ns]": "duration[ns]",
    "timedelta64[M]": "int64", "datetime64[ps]": "int64",
}
"""Types of times, and what pyarrow reads them as."""


def test_parquet_has_times_of_every_unit_as_exact_times_of_a_unit_that_it_has(tmp_path):
    rng = numpy.random.default_rng(SEED)
    made = {}
    group = zarr.create_group(tmp_path / "steps", zarr_format=3)
    for place, step in enumerate(STEPS):
        steps = rng.integers(-2000, 2000, 50)
        values = steps.astype("int64").view(step)
        values[7] = numpy.array("NaT", step)
        made[f"s{place}"] = values
        array = group.create_array(f"s{place}", shape=(50,), dtype=values.dtype, dimension_names=["n"])
        array[...] = values
    with processes.zarrd(f"m={tmp_path}") as running:
        answer = requests.get(f"{running.data('m', 'steps')}?format=parquet", timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    file = tmp_path / "steps.parquet"
    file.write_bytes(answer.content)
    read = pyarrow.parquet.read_table(file)
    rows = duckdb.sql(f"SELECT * FROM '{file}'").arrow().read_all()
    for (name, values), (step, expected) in zip(made.items(), STEPS.items()):
        assert str(read.schema.field(name).type) == expected, step
        column = read.column(name)
        assert column.null_count == 1 and not column[7].is_valid, step
        if expected == "int64":
            wanted = values.view("int64")
            assert step.split("[")[0] in read.schema.field(name).metadata[b"zarr.data_type"].decode()
            found = column.fill_null(0).to_numpy()
            wanted = numpy.where(numpy.isnat(values), 0, wanted)
        else:
            found, wanted = column.to_numpy(), values
        numpy.testing.assert_array_equal(found, wanted, err_msg=step)
        # Without Arrow's schema spans are numbers, as in every file of pyarrow.
        other = rows.column(name)
        if expected.startswith("duration"):
            assert str(other.type) == "int64", step
            numpy.testing.assert_array_equal(other.fill_null(0).to_numpy(), column.cast("int64").fill_null(0).to_numpy(), err_msg=step)
        elif expected != "int64":
            numpy.testing.assert_array_equal(other.to_numpy(), values, err_msg=step)


def test_parquet_has_each_type_in_groups_of_rows_for_pyarrow_and_duckdb(long, tmp_path):
    running, made = long
    answer = requests.get(f"{running.data('m', 'long')}?format=parquet", timeout=SECONDS * 4)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    file = tmp_path / "long.parquet"
    file.write_bytes(answer.content)
    assert pyarrow.parquet.ParquetFile(file).num_row_groups > 1
    table = pyarrow.parquet.read_table(file)
    for name in TYPES:
        expected = "float" if name == "float16" else str(pyarrow.from_numpy_dtype(numpy.dtype(name)))
        assert str(table.schema.field(name).type) == expected, name
    assert table.schema.field("when").type == pyarrow.timestamp("ms") and table.schema.field("text").type == pyarrow.string()
    found = table.to_pandas()
    for name, values in made.items():
        numpy.testing.assert_array_equal(found[name].to_numpy(), values, err_msg=name)
    numpy.testing.assert_array_equal(found["x"], numpy.tile(numpy.arange(60) / 4, 2000))
    query = f"SELECT t, count(*), sum(int16), min(float64), max(text), count(\"when\") FROM '{file}' GROUP BY t ORDER BY t"
    groups = duckdb.sql(query).fetchall()
    frame = pandas.DataFrame(made).assign(t=numpy.repeat(numpy.arange(40) / 4, 3000))
    for row, (t, part) in zip(groups, frame.groupby("t"), strict=True):
        counts = (t, len(part), part.int16.astype(int).sum(), part.float64.min(), max(part.text), part.when.notna().sum())
        assert row == counts


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_of_many_rows_arrives_whole(long, format):
    running, made = long
    url = f"{running.data('m', 'long')}?vars=int32,text&coords=1&format={format}"
    found = read(url, format, [])
    numpy.testing.assert_array_equal(found["int32"], made["int32"])
    assert list(found["text"].fillna("")) == list(made["text"])
    numpy.testing.assert_array_equal(found["y"], numpy.tile(numpy.repeat(numpy.arange(50) / 4, 60), 40))
