"""`/v1/data/…` answers structs, texts, dates and the like so that numpy, pyarrow and csv read what zarr-python wrote."""

import csv
import io

import numpy
import pyarrow
import pytest
import requests
import zarr
import zarr.storage

import arrays
import processes

pytestmark = pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")

POINT = numpy.dtype([("x", "<i2"), ("y", "<f4")])
STRUCT = numpy.dtype([("a", "<i4"), ("p", POINT), ("s", "S3"), ("u", "<U2")])
STRUCTS = numpy.array(
    [
        (1, (2, 0.5), b"one", "é"),
        (-3, (-4, numpy.nan), b"a,b", "日本"),
        (5, (6, 7.25), b"", ""),
    ],
    dtype=STRUCT,
)
TEXTS = numpy.array(["", 'say "hi"', "déjà, vu", "two\nlines", "x", "日本語"], dtype=object).reshape(3, 2)


def times(dtype):
    return numpy.array([0, -1, 1_000_003, numpy.iinfo("int64").min, 20_000], dtype="int64").view(dtype)


VALUES = {
    **{name: arrays.values(name, 5, 4, 3) for name in ["int8", "uint16", "int32", "int64", "uint64", "float32"]},
    **{f"{name}_1d": arrays.values(name, 7) for name in ["bool", "uint8", "int16", "float16", "float64", "complex64"]},
    "half": arrays.values("float16", 4, 3),
    "flags": arrays.values("bool", 4, 3),
    "complex": arrays.values("complex128", 4, 3),
    "seconds": times("M8[s]"),
    "nanoseconds": times("M8[ns]"),
    "days": times("M8[D]"),
    "span": times("m8[ms]"),
    "unicode": numpy.array([["é", ""], ["日本", "abc"]], dtype="<U3"),
    "fixed": numpy.array([b"a", b"", b"abc\xff"], dtype="S4"),
    "raw": numpy.array([b"\x00\x01", b"\xff\x00"], dtype="V2"),
    "text": TEXTS,
    "struct": STRUCTS,
}
CASES = [(name, 3) for name in VALUES if name != "raw"] + [(name, 2) for name in VALUES]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server whose mount `data` holds every array, in both formats, in chunks of two."""
    root = tmp_path_factory.mktemp("formats")
    for name, zarr_format in CASES:
        values = VALUES[name]
        made = zarr.create_array(
            zarr.storage.LocalStore(root),
            name=f"{name}{zarr_format}",
            shape=values.shape,
            chunks=(2,) * values.ndim,
            dtype="str" if values.dtype == object else values.dtype,
            zarr_format=zarr_format,
        )
        made[...] = values
    with processes.zarrd(f"data={root}") as running:
        yield running


def ask(server, name, zarr_format, **query):
    answer = requests.get(server.data("data", f"{name}{zarr_format}"), params=query, timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.content


def read_arrow(content):
    with pyarrow.ipc.open_stream(content) as stream:
        return stream.read_all().combine_chunks()


def plain(column):
    """The elements of a column as Python has them, in the lists that they are in."""
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(column, pyarrow.FixedShapeTensorArray):
        return column.to_numpy_ndarray().tolist()
    return column.to_pylist()


def as_arrow(values):
    """What pyarrow makes of the elements of numpy."""
    if values.dtype.kind == "c":
        pairs = values.view(f"f{values.dtype.itemsize // 2}").reshape(*values.shape, 2)
        return pairs.tolist()
    if values.dtype.kind in "Mm":
        return pyarrow.array(values).to_pylist()
    return values.tolist()


@pytest.mark.parametrize(("name", "zarr_format"), CASES)
def test_pyarrow_reads_the_elements(server, name, zarr_format):
    values = VALUES[name]
    table = read_arrow(ask(server, name, zarr_format, format="arrow"))
    table.validate(full=True)
    assert table.num_rows == len(values)
    if name == "struct":
        assert table.column_names == list(STRUCT.names)
        for field in ["a", "s", "u"]:
            assert plain(table[field]) == as_arrow(values[field]), field
        points = plain(table["p"])
        assert [point["x"] for point in points] == values["p"]["x"].tolist()
        numpy.testing.assert_array_equal([point["y"] for point in points], values["p"]["y"])
    else:
        assert table.column_names == ["values"]
        assert repr(plain(table["values"])) == repr(as_arrow(values))


@pytest.mark.parametrize(
    ("name", "arrow_type"),
    [
        ("float16_1d", pyarrow.float16()),
        ("bool_1d", pyarrow.bool_()),
        ("seconds", pyarrow.timestamp("s")),
        ("nanoseconds", pyarrow.timestamp("ns")),
        ("days", pyarrow.date32()),
        ("span", pyarrow.duration("ms")),
        ("fixed", pyarrow.binary()),
        ("int32", pyarrow.fixed_shape_tensor(pyarrow.int32(), [4, 3])),
        ("text", pyarrow.list_(pyarrow.field("item", pyarrow.string(), nullable=False), 2)),
    ],
)
def test_a_column_has_the_type_that_arrow_has_for_it(server, name, arrow_type):
    for zarr_format in [2, 3]:
        found = read_arrow(ask(server, name, zarr_format, format="arrow")).schema.field("values").type
        if isinstance(arrow_type, pyarrow.FixedShapeTensorType):
            assert isinstance(found, pyarrow.FixedShapeTensorType)
            assert (found.shape, found.value_type) == (arrow_type.shape, arrow_type.value_type)
        else:
            assert found == arrow_type


@pytest.mark.parametrize(("name", "zarr_format"), CASES)
def test_numpy_opens_the_file(server, name, zarr_format):
    values = VALUES[name]
    expected = values.astype("U") if values.dtype == object else values
    for endian in ["little", "big"]:
        # Without pickles, which is numpy's default.
        loaded = numpy.load(io.BytesIO(ask(server, name, zarr_format, format="npy", endian=endian)))
        assert loaded.shape == expected.shape
        assert loaded.astype(expected.dtype).dtype == expected.dtype
        assert repr(loaded.tolist()) == repr(expected.tolist())


def test_numpy_reads_each_field(server):
    for zarr_format in [2, 3]:
        for names, expected in [("p.y", STRUCTS["p"]["y"]), ("u", STRUCTS["u"]), ("p", STRUCTS["p"])]:
            loaded = numpy.load(io.BytesIO(ask(server, "struct", zarr_format, format="npy", fields=names)))
            assert loaded.dtype == expected.dtype
            assert loaded.tobytes() == expected.tobytes()
        loaded = numpy.load(io.BytesIO(ask(server, "struct", zarr_format, format="npy", fields="u,a", slice="::-1")))
        assert loaded.dtype.names == ("u", "a")
        assert loaded.tolist() == STRUCTS[["u", "a"]][::-1].tolist()


def rows(server, name, zarr_format, **query):
    text = ask(server, name, zarr_format, format="csv", **query).decode()
    first, *rest = csv.reader(io.StringIO(text, newline=""))
    # What the columns are: the array's name, or their indices.
    assert first == [f"{name}{zarr_format}"] or first == [str(column) for column in range(len(first))], first
    return rest


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_csv_reads_the_rows_and_columns(server, zarr_format):
    assert rows(server, "text", zarr_format) == TEXTS.tolist()
    assert rows(server, "unicode", zarr_format) == VALUES["unicode"].tolist()
    read = numpy.array(rows(server, "half", zarr_format), dtype="float16")
    numpy.testing.assert_array_equal(read, VALUES["half"])
    read = numpy.array([[complex(cell) for cell in row] for row in rows(server, "complex", zarr_format)])
    numpy.testing.assert_array_equal(read, VALUES["complex"])
    for name in ["seconds", "nanoseconds", "days"]:
        read = numpy.array([row[0] for row in rows(server, name, zarr_format)], dtype=VALUES[name].dtype)
        numpy.testing.assert_array_equal(read, VALUES[name])
    read = numpy.array(rows(server, "int32", zarr_format, slice="1"), dtype="int32")
    numpy.testing.assert_array_equal(read, VALUES["int32"][1])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_csv_reads_the_fields_of_a_struct(server, zarr_format):
    text = ask(server, "struct", zarr_format, format="csv").decode()
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(table[0]) == ["a", "p.x", "p.y", "s", "u"]
    for row, element in zip(table, STRUCTS, strict=True):
        assert (int(row["a"]), int(row["p.x"])) == (element["a"], element["p"]["x"])
        numpy.testing.assert_equal(float(row["p.y"]), float(element["p"]["y"]))
        assert (row["s"], row["u"]) == (element["s"].decode(), element["u"])
