"""What zarr-python writes in spellings of its own, and reads though the specification does not permit it, the server reads
as zarr-python does."""

import json

import numcodecs
import numpy
import pytest
import requests
import zarr
import zarr.codecs.numcodecs as zarr_numcodecs

import processes

pytestmark = pytest.mark.filterwarnings("ignore")

VALUES = numpy.array([0.0, 1.5, 2.0, 2.5])
FILTERS = {
    **{f"delta {spelling}": zarr_numcodecs.Delta(dtype=spelling) for spelling in ["f8", "=f8", "d", "float64", "double"]},
    "fixedscaleoffset u1": zarr_numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f8", astype="u1"),
    "fixedscaleoffset B": zarr_numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="f8", astype="B"),
    "quantize =f8": zarr_numcodecs.Quantize(digits=2, dtype="f8", astype="=f8"),
    "astype single": zarr_numcodecs.AsType(encode_dtype="single", decode_dtype="d"),
}

FILL_VALUES = [
    ("bool", "|b1", [0, 1, 0.0, True]),
    ("int32", "<i4", [3.0, "3", True, -7]),
    ("uint8", "|u1", [255.0, False]),
    ("float32", "<f4", ["nan", "NaN", "inf", "-inf", "+Infinity", "1.5", 1e39, -1e39, True, 7]),
]
WRITTEN = [
    pytest.param(data_type, dtype, value, id=f"{data_type}-{json.dumps(value)}")
    for data_type, dtype, values in FILL_VALUES
    for value in values
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder, and what reads the elements of an array in it through the server."""
    root = tmp_path_factory.mktemp("as-written")
    with processes.zarrd(f"m={root}") as running:

        def read(name):
            answer = requests.get(running.data("m", name), timeout=processes.SECONDS)
            assert answer.status_code == 200, answer.text
            return answer.content

        yield root, read


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", FILTERS)
def test_filters_are_read_with_types_as_their_callers_spelt_them(served, name, zarr_format):
    root, read = served
    path = f"{name.replace(' ', '-').replace('=', 'native-')}-{zarr_format}"
    filters = FILTERS[name]
    if zarr_format == 2:
        codec = filters.to_dict()
        filters = numcodecs.get_codec({"id": codec["name"].removeprefix("numcodecs."), **codec["configuration"]})
    made = zarr.create_array(
        root / path, shape=(4,), chunks=(2,), dtype="<f8", filters=[filters], compressors=None, zarr_format=zarr_format
    )
    made[...] = VALUES
    if zarr_format == 2:
        # numcodecs writes the types as they are; others write them as they were called.
        document = json.loads((root / path / ".zarray").read_text())
        document["filters"][0].update(FILTERS[name].to_dict()["configuration"])
        (root / path / ".zarray").write_text(json.dumps(document))
    expected = zarr.open_array(root / path, mode="r")[...]
    assert read(path) == expected.tobytes()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("data_type", "dtype", "written"), WRITTEN)
def test_a_fill_value_reads_as_zarr_python_reads_it(served, data_type, dtype, written, zarr_format):
    root, read = served
    folder = root / f"{data_type}-{json.dumps(written).strip(chr(34))}-{type(written).__name__}-{zarr_format}"
    folder.mkdir()
    common = {"zarr_format": zarr_format, "shape": [1], "fill_value": written}
    v2 = {"dtype": dtype, "chunks": [1], "order": "C", "filters": None, "compressor": None}
    v3 = {
        "node_type": "array",
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        # Without a byte order.
        "codecs": [{"name": "bytes"}],
    }
    name, members = {2: (".zarray", v2), 3: ("zarr.json", v3)}[zarr_format]
    (folder / name).write_text(json.dumps({**common, **members}))
    expected = zarr.open_array(folder, mode="r")[...]
    found = numpy.frombuffer(read(folder.name), expected.dtype)
    numpy.testing.assert_array_equal(found, expected, strict=True)
