"""Every data type opens through every view, as v2 or v3 stores it, with the values it has, in each client that knows it.

The documents are written by hand, with the names that the specifications have, and elements are compared as the bytes
that numpy has of them. What a client does not know in any spelling is named in `UNKNOWN`, with what it says to that; a
client that has learnt it fails the test, so that its name goes.
"""

import base64
import ctypes
import json
import re

import numpy
import pytest
import tensorstore
import zarr

import processes

pytestmark = pytest.mark.filterwarnings("ignore")

VIEWS = {"plain": "", "unshard": "", "rechunk": "auto/raw/"}
"""What stands between a view's mount and the path of an array."""

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def configured(name, **configuration):
    return {"name": name, "configuration": configuration}


def encoded(element):
    return base64.b64encode(element).decode()


class Case:
    """A type as each version writes it, the bytes of two elements, and of the fill value the bytes and both spellings."""

    def __init__(self, v3, v2, elements, fill, fill_v3, fill_v2, codec=LITTLE, fields=None):
        self.types = {3: v3, 2: v2}
        self.fills = {3: fill_v3, 2: fill_v2}
        self.elements, self.fill = elements, fill
        self.codec, self.fields = codec, fields

    def formats(self):
        return [zarr_format for zarr_format, written in self.types.items() if written is not None]

    def expected(self):
        """The bytes of three elements, of which the last one is not stored."""
        return self.elements + self.fill

    def write(self, folder, zarr_format):
        folder.mkdir(parents=True)
        common = {"zarr_format": zarr_format, "shape": [3], "fill_value": self.fills[zarr_format]}
        if zarr_format == 2:
            v2 = {"dtype": self.types[2], "chunks": [2], "order": "C", "filters": None, "compressor": None}
            document, name, chunk = {**common, **v2}, ".zarray", folder / "0"
        else:
            v3 = {
                "node_type": "array",
                "data_type": self.types[3],
                "chunk_grid": configured("regular", chunk_shape=[2]),
                "chunk_key_encoding": configured("default", separator="/"),
                "codecs": [self.codec],
            }
            document, name, chunk = {**common, **v3}, "zarr.json", folder / "c/0"
            chunk.parent.mkdir()
        (folder / name).write_text(json.dumps(document))
        chunk.write_bytes(self.elements)


def number(v3, v2, values, fill):
    """A type of numpy's; of v2 alone or of v3 alone if the other is None."""
    dtype = numpy.dtype(v2 if v2 else v3)
    element = numpy.array([fill], dtype)
    written = fill
    if dtype.kind == "c":
        written = [fill.real, fill.imag]
    return Case(v3, v2, numpy.array(values, dtype).tobytes(), element.tobytes(), written, written)


def bytes_of(v3, v2, first, second, fill, **options):
    """A type of bytes, whose fill value v2 has in base64."""
    fill_v3 = options.pop("fill_v3", encoded(fill))
    return Case(v3, v2, first + second, fill, fill_v3, encoded(fill), **options)


def fields(*pairs):
    return [{"name": name, "data_type": data_type} for name, data_type in pairs]


STRUCT = numpy.dtype([("a", "<i2"), ("b", "<f4"), ("c", "?")])
TEXTS = numpy.dtype([("a", "<i2"), ("s", "S3"), ("r", "V2")])
NESTED = numpy.dtype([("a", "<i2"), ("p", [("x", "<i4"), ("y", "<f8")])])
POINT = configured("struct", fields=fields(("x", "int32"), ("y", "float64")))
TIME = {"unit": "s", "scale_factor": 1}


def count(number_of_steps):
    return number_of_steps.to_bytes(8, "little")


CASES = {
    "bool": number("bool", "|b1", [True, False], True),
    "int8": number("int8", "|i1", [-1, 100], -7),
    "uint8": number("uint8", "|u1", [255, 1], 7),
    **{f"int{bits}": number(f"int{bits}", f"<i{bits // 8}", [-1, 100], -7) for bits in (16, 32, 64)},
    **{f"uint{bits}": number(f"uint{bits}", f"<u{bits // 8}", [255, 1], 7) for bits in (16, 32, 64)},
    **{f"float{bits}": number(f"float{bits}", f"<f{bits // 8}", [-0.5, 2.5], 1.5) for bits in (16, 32, 64)},
    "complex64": number("complex64", "<c8", [1 - 2j, 3j], 0.5 - 1j),
    "complex128": number("complex128", "<c16", [1 - 2j, 3j], 0.5 - 1j),
    "int2": Case("int2", "int2", b"\x01\xfe", b"\xff", -1, -1),
    "int4": Case("int4", "int4", b"\x07\xf8", b"\xff", -1, -1),
    "uint2": Case("uint2", "uint2", b"\x01\x03", b"\x02", 2, 2),
    "uint4": Case("uint4", "uint4", b"\x07\x0f", b"\x02", 2, 2),
    "bfloat16": Case("bfloat16", "bfloat16", b"\x80\x3f\x00\xc0", b"\x00\x40", 2.0, 2.0),
    "float8_e4m3fn": Case("float8_e4m3fn", "float8_e4m3fn", b"\x38\xb8", b"\x40", 2.0, 2.0),
    "float8_e3m4": Case("float8_e3m4", None, b"\x30\xb0", b"\x40", 2.0, None),
    "complex_float16": Case("complex_float16", None, b"\0\x3c\0\0\0\0\0\x3c", b"\0\x3c\0\x3c", [1, 1], None),
    "datetime64": Case(configured("numpy.datetime64", **TIME), "<M8[s]", bytes(range(16)), count(7), 7, 7),
    "timedelta64": Case(configured("numpy.timedelta64", **TIME), "<m8[s]", bytes(range(16)), count(7), 7, 7),
    "raw bits": bytes_of("r24", "|V3", b"a\0c", b"\xff\0\0", b"\0\1\2", fill_v3=[0, 1, 2]),
    "raw_bytes": bytes_of(configured("raw_bytes", length_bytes=3), None, b"a\0c", b"\xff\0\0", b"\0\1\2"),
    "text of bytes": bytes_of(configured("null_terminated_bytes", length_bytes=3), "|S3", b"ab\0", b"cde", b"x\0\0"),
    "text of characters": Case(
        configured("fixed_length_utf32", length_bytes=8), "<U2", "é\0ab".encode("utf-32-le"), "x\0".encode("utf-32-le"), "x", "x"
    ),
    "struct": bytes_of(
        configured("struct", fields=fields(("a", "int16"), ("b", "float32"), ("c", "bool"))),
        [["a", "<i2"], ["b", "<f4"], ["c", "|b1"]],
        *(numpy.array([one], STRUCT).tobytes() for one in [(1, 2.5, True), (-3, -4.5, False), (7, 0.5, True)]),
        fill_v3={"a": 7, "b": 0.5, "c": True},
        fields=STRUCT,
    ),
    "struct of texts": bytes_of(
        configured(
            "struct", fields=fields(("a", "int16"), ("s", configured("null_terminated_bytes", length_bytes=3)), ("r", "r16"))
        ),
        [["a", "<i2"], ["s", "|S3"], ["r", "|V2"]],
        *(numpy.array([one], TEXTS).tobytes() for one in [(1, b"ab", b"\0\1"), (-3, b"xyz", b"\2\3"), (7, b"", b"\4\5")]),
        fill_v3={"a": 7, "s": "", "r": [4, 5]},
        fields=TEXTS,
    ),
    "struct, nested": bytes_of(
        configured("struct", fields=fields(("a", "int16"), ("p", POINT))),
        [["a", "<i2"], ["p", [["x", "<i4"], ["y", "<f8"]]]],
        *(numpy.array([one], NESTED).tobytes() for one in [(1, (2, 2.5)), (-3, (-4, -4.5)), (7, (8, 0.5))]),
        fill_v3={"a": 7, "p": {"x": 8, "y": 0.5}},
        fields=NESTED,
    ),
    "struct with subarrays": bytes_of(
        None,
        [["a", "<i2"], ["q", "<i2", [2]]],
        b"\1\0\2\0\3\0",
        b"\4\0\5\0\6\0",
        b"\7\0\x08\0\x09\0",
        fields=numpy.dtype([("a", "<i2"), ("q", "<i2", (2,))]),
    ),
}


def variable(*elements):
    """Elements of variable length, each behind its length, behind their number."""
    parts = [len(element).to_bytes(4, "little") + element for element in elements]
    return len(elements).to_bytes(4, "little") + b"".join(parts)


class Variable(Case):
    """A type of variable length; elements are compared as Python has them."""

    def __init__(self, v3, codec, elements, fill_v3, decode):
        stored = variable(*elements)
        super().__init__(v3, "|O", stored, b"", fill_v3, None, {"name": codec})
        self.values = [decode(element) for element in (*elements, b"")]

    def write(self, folder, zarr_format):
        super().write(folder, zarr_format)
        if zarr_format == 2:
            document = json.loads((folder / ".zarray").read_text())
            document["filters"] = [{"id": self.codec["name"]}]
            (folder / ".zarray").write_text(json.dumps(document))


CASES["string"] = Variable("string", "vlen-utf8", ["é".encode(), b""], "", bytes.decode)
CASES["bytes"] = Variable("bytes", "vlen-bytes", [b"a\0\xff", b""], [], bytes)

KEYS = [f"{name}/{zarr_format}" for name, case in CASES.items() for zarr_format in case.formats()]

NONE_MATCHES = "No Zarr data type found that matches"
NOT_SUPPORTED = "not one of the supported data types|Unsupported zarr dtype"
NESTED_FIELDS = "Error parsing object member"

UNKNOWN = {
    "zarr-python": {
        **dict.fromkeys(["int2", "int4", "uint2", "uint4", "bfloat16", "float8_e4m3fn", "float8_e3m4"], NONE_MATCHES),
        "complex_float16": NONE_MATCHES,
        "struct with subarrays": NONE_MATCHES,
    },
    "tensorstore": {
        **dict.fromkeys(["uint2", "uint4", "complex_float16", "datetime64", "timedelta64"], NOT_SUPPORTED),
        **dict.fromkeys(["text of characters", "string", "bytes"], NOT_SUPPORTED),
        "struct, nested": NESTED_FIELDS,
    },
}
"""What a client knows in neither version, and what it says."""

ONE_VERSION = {
    # zarr-python reads structs in structs in v3 alone.
    ("zarr-python", "struct, nested", "plain", 2): NONE_MATCHES,
    ("zarr-python", "struct, nested", "unshard", 2): NONE_MATCHES,
    # tensorstore knows text of bytes in v2 alone, and in v3 structs of numbers alone.
    **{
        ("tensorstore", name, view, 3): NOT_SUPPORTED + "|" + NESTED_FIELDS
        for name in ["text of bytes", "struct of texts"]
        for view in ["plain", "unshard"]
    },
}
"""What a client knows in one version alone, in the views that show an array in the version in which it is stored."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`url(view, key)` is where an array is in a view."""
    root = tmp_path_factory.mktemp("types")
    for key in KEYS:
        name, zarr_format = key.rsplit("/", 1)
        CASES[name].write(root / key, int(zarr_format))
    with processes.zarrd(f"types={root}") as running:
        yield lambda view, key: f"{running.base}/{view}/types/{VIEWS[view]}{key.replace(' ', '%20')}"


def zarr_python(url, case, _zarr_format):
    """What it finds first, which is what it takes for the array."""
    values = zarr.open_array(url, mode="r")[...]
    return values.tolist() if isinstance(case, Variable) else values.tobytes()


def tensorstore_reads(url, case, zarr_format):
    if case.fields is None:
        return of_tensorstore(url, zarr_format)
    assert not isinstance(case, Variable)
    values = numpy.zeros(3, case.fields)
    for name in case.fields.names:
        part = of_tensorstore(url, zarr_format, field=name)
        dtype = case.fields[name]
        values[name] = numpy.frombuffer(part, dtype.base).reshape(3, *dtype.shape)
    return values.tobytes()


def of_tensorstore(url, zarr_format, **options):
    kvstore = {"driver": "http", "base_url": f"{url}/"}
    spec = {"driver": {2: "zarr", 3: "zarr3"}[zarr_format], "kvstore": kvstore, **options}
    opened = tensorstore.open(spec, read=True).result(timeout=30)
    read = opened.read().result(timeout=30)
    assert read.flags.c_contiguous or read.itemsize == 0
    # Elements that are bytes have no size in numpy, but they are there.
    return read.tobytes() if read.itemsize else ctypes.string_at(read.ctypes.data, read.size)


def versions(view, zarr_format):
    """The versions in which a view shows an array. A client may request each of them."""
    return [3, 2] if view == "rechunk" else [zarr_format]


def check(client, read, served, view, key):
    name, zarr_format = key.rsplit("/", 1)
    case, zarr_format = CASES[name], int(zarr_format)
    reason = UNKNOWN[client].get(name) or ONE_VERSION.get((client, name, view, zarr_format))
    read_values, errors = [], []
    for version in versions(view, zarr_format):
        try:
            read_values.append(read(served(view, key), case, version))
        except Exception as error:  # What it says is compared.
            errors.append(str(error))
    if reason is not None:
        assert read_values == []
        assert re.search(reason, errors[0]), errors
        return
    assert read_values, errors
    expected = case.values if isinstance(case, Variable) else case.expected()
    assert all(values == expected for values in read_values), read_values


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("key", KEYS)
def test_zarr_python_reads_every_type_that_it_knows_through_every_view(served, view, key):
    check("zarr-python", zarr_python, served, view, key)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("key", KEYS)
def test_tensorstore_reads_every_type_that_it_knows_through_every_view(served, view, key):
    check("tensorstore", tensorstore_reads, served, view, key)
