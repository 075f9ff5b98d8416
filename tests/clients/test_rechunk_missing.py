"""xarray finds the same missing data in `/rechunk` in either format as in what it wrote, in the format that is stored."""

import json

import numpy
import pytest
import xarray

import processes

ROWS = [numpy.nan, 0.0, 1.5, -2.0, 7.0, numpy.nan]
ENCODINGS = {
    "packed": {"dtype": "int16", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -32768},
    "packed_zero": {"dtype": "uint8", "scale_factor": 0.5, "add_offset": -10.0, "_FillValue": 0},
    "marked": {"dtype": "float32", "_FillValue": -9999.0},
    "plain": {"dtype": "float64"},
    "half": {"dtype": "float16"},
}
COUNTS = numpy.array([0, 1, 2, 0, 4, 5])


def dataset():
    variables = {name: ("x", numpy.array(ROWS)) for name in ENCODINGS}
    # Zero is a value of these.
    counts = {"counts": ("x", COUNTS.astype("int32")), "flags": ("x", COUNTS > 1), "wide": ("x", COUNTS.astype("int64"))}
    return xarray.Dataset({**variables, **counts})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with the dataset in both formats, as the mount `m`."""
    folder = tmp_path_factory.mktemp("missing")
    for zarr_format in [2, 3]:
        options = {"zarr_format": zarr_format, "consolidated": False}
        dataset().to_zarr(folder / f"m/v{zarr_format}", encoding=ENCODINGS, **options)
    config = folder / "zarrd.toml"
    config.write_text(f"[mounts.m]\nurl = {json.dumps(str(folder / 'm'))}\n")
    with processes.zarrd("--config", str(config)) as running:
        yield running


@pytest.mark.parametrize("mode", ["rechunk/m/4/zstd", "rechunk/m/auto/raw"])
@pytest.mark.parametrize("opened", [2, 3])
@pytest.mark.parametrize("stored", [2, 3])
def test_missing_data_is_the_same_in_either_format(served, stored, opened, mode):
    url = f"{served.base}/{mode}/v{stored}"
    read = xarray.open_zarr(url, zarr_format=opened, consolidated=False).load()
    expected = xarray.open_zarr(f"{served.base}/store/m/v{stored}", zarr_format=stored, consolidated=False).load()
    xarray.testing.assert_identical(read, expected)
    for name in ENCODINGS:
        numpy.testing.assert_array_equal(numpy.isnan(read[name]), numpy.isnan(ROWS), name)
    numpy.testing.assert_array_equal(read["counts"], COUNTS)
    assert read["counts"].dtype == "int32"
