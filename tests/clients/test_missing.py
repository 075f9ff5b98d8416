"""Statistics, reductions and downsampling skip the elements that xarray finds to be missing, and zarr-python reads the same where no chunk is
stored."""

import io
import json

import numpy
import pytest
import requests
import xarray
import zarr

import processes

VALUES = numpy.array([[numpy.nan, 0, 1.5, -2, 7, numpy.nan], [3, 4, numpy.nan, numpy.nan, 6.5, 0], [1, 1, 2, 2, 8, 9], [0, 0, 0, 0, 0, 0]])
ENCODINGS = {
    "packed": {"dtype": "int16", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -32768},
    "integers": {"dtype": "int32", "_FillValue": -9},
    "zero": {"dtype": "uint8", "_FillValue": 255},
    "marked": {"dtype": "float32", "_FillValue": -9999.0},
    "plain": {"dtype": "float64"},
    "unmarked": {"dtype": "float64", "_FillValue": None},
}
TYPES = ["<M8[s]", "<M8[ns]", "<m8[ms]", ">M8[D]", "<f4", "<i2", "|b1", "<c8", "<U3", "|S3"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a dataset in both formats, and arrays of v2 without a fill value, as the mount `m`; and its folder."""
    folder = tmp_path_factory.mktemp("missing")
    whole = {"integers": numpy.rint(VALUES), "zero": numpy.abs(numpy.rint(VALUES))}
    dataset = xarray.Dataset({name: (("y", "x"), whole.get(name, VALUES)) for name in ENCODINGS})
    for zarr_format in [2, 3]:
        encodings = {name: encoding | {"chunks": (2, 3)} for name, encoding in ENCODINGS.items()}
        dataset.to_zarr(folder / f"m/v{zarr_format}", encoding=encodings, zarr_format=zarr_format, consolidated=False)
    # A chunk that is not stored is missing as a whole.
    (folder / "m/v2/integers/1.1").unlink()
    for dtype in TYPES:
        array = {"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": dtype, "fill_value": None, "order": "C", "compressor": None, "filters": None}
        path = folder / "m/null" / dtype.strip("<>|")
        path.mkdir(parents=True)
        (path / ".zarray").write_text(json.dumps(array))
    (folder / "m/null/.zgroup").write_text('{"zarr_format": 2}')
    config = folder / "zarrd.toml"
    config.write_text(f"[mounts.m]\nurl = {json.dumps(str(folder / 'm'))}\n")
    with processes.zarrd("--config", str(config)) as running:
        yield running, folder / "m"


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("stored", [2, 3])
def test_statistics_skip_what_xarray_finds_to_be_missing(served, stored, name):
    running, folder = served
    with xarray.open_zarr(folder / f"v{stored}", zarr_format=stored, consolidated=False) as data:
        values = data[name].load()
    found = requests.get(f"{running.base}/v1/stats/m/v{stored}/{name}", timeout=processes.SECONDS).json()
    assert found["count"] == int(values.count())
    assert found["missing"] + found["nan"] == values.size - int(values.count())
    for statistic in ["mean", "min", "max", "sum", "std"]:
        assert found[statistic] == pytest.approx(float(getattr(values.astype("float64"), statistic)())), statistic


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("stored", [2, 3])
def test_reductions_and_windows_skip_the_same(served, stored, name):
    running, folder = served
    with xarray.open_zarr(folder / f"v{stored}", zarr_format=stored, consolidated=False) as data:
        values = data[name].load().astype("float64")
    encoding = ENCODINGS[name]
    # Elements of this route are as they are stored.
    packed = (values - encoding.get("add_offset", 0)) / encoding.get("scale_factor", 1)

    def read(query):
        answer = requests.get(running.data("m", f"v{stored}/{name}?{query}&format=npy"), timeout=processes.SECONDS)
        assert answer.status_code == 200, answer.text
        return numpy.load(io.BytesIO(answer.content))

    numpy.testing.assert_array_equal(read("reduce.y=count"), values.count("y"))
    numpy.testing.assert_allclose(read("reduce.y=mean"), packed.mean("y"))
    numpy.testing.assert_allclose(read("reduce.x=std"), packed.std("x"))
    windows = packed.coarsen(y=2, x=2)
    for method in ["max", "min"]:
        found = read(f"downsample=2,2&method={method}").astype("float64")
        expected = getattr(windows, method)().values
        present = ~numpy.isnan(expected)
        numpy.testing.assert_allclose(found[present], expected[present])
        # Windows of nothing else have the mark.
        mark = encoding.get("_FillValue") if numpy.dtype(encoding["dtype"]).kind in "iu" else numpy.nan
        numpy.testing.assert_array_equal(found[~present], numpy.full((~present).sum(), mark, "float64"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["store/m", "plain/m", "rechunk/m/4/zstd", "rechunk/m/auto/raw"])
def test_an_array_of_v2_without_a_fill_value_reads_as_zarr_python_reads_it(served, dtype, mode):
    running, folder = served
    name = dtype.strip("<>|")
    expected = zarr.open_array(folder / "null" / name, mode="r", zarr_format=2)[:]
    read = zarr.open_array(f"{running.base}/{mode}/null/{name}", mode="r", zarr_format=2)[:]
    numpy.testing.assert_array_equal(read, expected)
    answer = requests.get(running.data("m", f"null/{name}?format=npy"), timeout=processes.SECONDS)
    numpy.testing.assert_array_equal(numpy.load(io.BytesIO(answer.content)), expected.astype(expected.dtype.newbyteorder("<")))


@pytest.mark.parametrize("dtype", TYPES[:4])
def test_times_without_a_fill_value_are_not_a_time_in_v3_too(served, dtype):
    running, _ = served
    read = zarr.open_array(f"{running.base}/rechunk/m/4/zstd/null/{dtype.strip('<>|')}", mode="r", zarr_format=3)[:]
    assert numpy.isnat(read).all()
