"""What the library encodes is read by zarr-python, bit for bit, from the documents that the library writes."""

import base64
import json
import os
import pathlib
import warnings

import pytest
import zarr

from drawn import canonical

FOLDER = pathlib.Path(os.environ["ZARRD_ENCODED"])
"""Where the library's own tests have written arrays, by format; `elements` beside each one is what it holds."""

PATHS = {version: sorted(path.parent for path in FOLDER.glob(f"v{version}/*/elements")) for version in (2, 3)}

# zarr-python says of half of its types and codecs that others may not know them. That is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore")

TYPES = {"bool", "complex64", "complex128", "string", "bytes"}
TYPES |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"float16", "float32", "float64"}
TYPES |= {"numpy.datetime64", "numpy.timedelta64", "fixed_length_utf32", "null_terminated_bytes"}
TYPES |= {"raw_bytes", "structured"}
"""The data types of zarr-python."""


def renamed(data_type):
    """What zarr-python calls a type that it knows by another name only."""
    match data_type:
        case {"name": "struct", "configuration": {"fields": fields}}:
            fields = [[field["name"], renamed(field["data_type"])] for field in fields]
            return {"name": "structured", "configuration": {"fields": fields}}
        case str() if data_type.startswith("r") and data_type[1:].isdecimal():
            return {"name": "raw_bytes", "configuration": {"length_bytes": int(data_type[1:]) // 8}}
    return data_type


def codecs(chain):
    """The codecs of a document, those inside shards too."""
    for codec in chain:
        yield codec
        yield from codecs(codec.get("configuration", {}).get("codecs", []))


def document(path):
    """The document, with types under the names that zarr-python has for them."""
    document = json.loads((path / "zarr.json").read_text())
    data_type = renamed(document["data_type"])
    if data_type != document["data_type"]:
        document["data_type"] = data_type
        # It spells their fill values in base64. The last element is one.
        values = zarr.create_array({}, shape=(), dtype=zarr.dtype.parse_data_type(data_type, zarr_format=3)).dtype
        fill_value = (path / "elements").read_bytes()[-values.itemsize :]
        document["fill_value"] = base64.b64encode(fill_value).decode()
    return document


def is_known(document):
    """Whether zarr-python has the data type and all codecs, and numcodecs was built with them."""
    data_type = document["data_type"]
    name = data_type if isinstance(data_type, str) else data_type["name"]
    for codec in codecs(document["codecs"]):
        configuration = codec.get("configuration", {})
        match codec["name"]:
            case "packbits" | "bitround":
                return False
            case "blosc" if configuration["cname"] == "snappy":
                return False
            # It cannot hash the fill values of these types, as it must for shards.
            case "sharding_indexed" if name in ("raw_bytes", "structured"):
                return False
            # It reads fields as little-endian whatever is said, and v3 has no word for fields that differ.
            case "bytes" if name == "structured" and configuration["endian"] != "little":
                return False
    return name in TYPES


def assert_reads(array, path):
    read = array[...]
    read = read.astype(object) if read.dtype.kind == "T" else read
    assert canonical(read) == (path / "elements").read_bytes()


with warnings.catch_warnings(action="ignore"):
    KNOWN = [path for path in PATHS[3] if is_known(document(path))]


def test_zarr_python_knows_more_than_two_hundred_encoded_arrays():
    assert len(KNOWN) > 200


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.name)
def test_an_array_that_the_library_encoded_reads_equal(path):
    (path / "zarr.json").write_text(json.dumps(document(path)))
    assert_reads(zarr.open_array(path, mode="r", zarr_format=3), path)


@pytest.mark.parametrize("path", PATHS[2], ids=lambda path: path.name)
def test_an_array_of_v2_that_the_library_encoded_reads_equal(path):
    assert_reads(zarr.open_array(path, mode="r", zarr_format=2), path)
