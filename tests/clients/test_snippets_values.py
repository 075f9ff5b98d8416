"""The lines of "Use it" where the stored numbers stand for others, and those for whole groups."""

import io
import re
import shlex
import subprocess

import numpy
import PIL.Image
import pytest
import requests
import xarray
import zarr

import processes
import table
from test_snippets import HTML, snippets

pytestmark = pytest.mark.filterwarnings("ignore")

TIMES = numpy.array(["2024-01-01T00", "2024-01-01T06", "2024-01-01T12"], dtype="datetime64[ns]")
VALUES = numpy.random.default_rng(3).uniform(0, 30, (3, 5, 8)).round(3)
VALUES[1, 2, 3] = numpy.nan


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    coordinates = {"time": TIMES, "y": numpy.arange(5.0), "x": numpy.arange(8.0)}
    dataset = xarray.Dataset({"tp": (("time", "y", "x"), VALUES)}, coords=coordinates)
    packing = {"tp": {"dtype": "int16", "scale_factor": 0.001, "add_offset": 10.0, "_FillValue": -32768}}
    dataset.to_zarr(folder / "weather", encoding=packing, zarr_format=2)
    xarray.DataTree.from_dict({"/one": dataset, "/two": dataset}).to_zarr(folder / "tree", zarr_format=3)
    axes = [{"name": name, "type": "space"} for name in "yx"]
    levels = [{"path": name, "coordinateTransformations": [{"type": "scale", "scale": [by, by]}]} for name, by in [("0", 1.0), ("1", 2.0)]]
    image = zarr.create_group(folder / "image", attributes={"ome": {"version": "0.5", "multiscales": [{"name": "image", "axes": axes, "datasets": levels}]}})
    for name, side in [("0", 8), ("1", 4)]:
        image.create_array(name, data=numpy.arange(side * side, dtype="uint8").reshape(side, side), chunks=(4, 4), dimension_names=("y", "x"))
    with processes.zarrd(f"m={folder}") as running:
        yield running


@pytest.mark.parametrize("title", ["Python · zarr", "Python · xarray", "Python · numpy"])
def test_python_returns_the_values_that_the_picture_shows(running, title):
    names = {}
    exec(compile(snippets(running, "m/weather/tp?slice=1,:,2:6")[title], title, "exec"), names)  # noqa: S102
    numpy.testing.assert_allclose(numpy.asarray(names["values"]), VALUES[1, :, 2:6], atol=1e-5)


def test_the_stored_numbers_are_asked_for_by_name(running):
    lines = snippets(running, "m/weather/tp?slice=1,:,2:6&decode=none")
    names = {}
    exec(compile(lines["Python · numpy"], "numpy", "exec"), names)  # noqa: S102
    assert names["values"].dtype == "int16" and "decode" not in lines["Python · numpy"] and "stored" not in lines["Python · zarr"]


def test_the_links_below_the_picture_have_the_values_that_it_shows(running):
    page = requests.get(f"{running.base}/view/m/weather/tp?slice=1,:,2:6", headers=HTML, timeout=processes.SECONDS).text
    links = {name: link.replace("&amp;", "&") for link, name in re.findall(r'<a href="([^"]+)" data-format="(\w+)"', page)}
    assert set(links) == {"npy", "csv", "json", "arrow", "parquet", "nc", "tiff"}
    found = numpy.load(io.BytesIO(requests.get(f"{running.base}{links['npy']}", timeout=processes.SECONDS).content))
    numpy.testing.assert_allclose(found, VALUES[1, :, 2:6], atol=1e-5)
    # Where values are what is stored, nothing is said.
    page = requests.get(f"{running.base}/view/m/weather/x?tab=use", headers=HTML, timeout=processes.SECONDS).text
    assert "decode=cf" not in page and "stand for others" not in page


def test_xarray_returns_the_dates_of_a_coordinate(running):
    names = {}
    exec(compile(snippets(running, "m/weather/time")["Python · xarray"], "xarray", "exec"), names)  # noqa: S102
    numpy.testing.assert_array_equal(names["values"].values, TIMES)


def test_gdal_reads_a_plane_of_an_array_of_more_dimensions(running, tmp_path):
    # Debian's GDAL reads v2 alone.
    for line in snippets(running, "m/weather/tp?slice=2,:,:")["GDAL"].splitlines():
        program, *arguments = shlex.split(line)
        done = subprocess.run([table.program(program), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    stored = requests.get(f"{running.base}/v1/data/m/weather/tp?slice=2,:,:&format=npy", timeout=processes.SECONDS)
    numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(tmp_path / "picture.tif")), numpy.load(io.BytesIO(stored.content)))


def test_groups_have_lines_that_open_them(running):
    names = {}
    exec(compile(snippets(running, "m/weather")["Python · xarray"], "dataset", "exec"), names)  # noqa: S102
    numpy.testing.assert_allclose(names["dataset"]["tp"].values, VALUES, atol=1e-5)
    exec(compile(snippets(running, "m/tree")["Python · xarray"], "tree", "exec"), names)  # noqa: S102
    numpy.testing.assert_allclose(names["tree"]["two"]["tp"].values, VALUES, atol=1e-5)
    lines = snippets(running, "m/image")
    exec(compile(lines["Python · ome-zarr"], "image", "exec"), names)  # noqa: S102
    assert [level.shape for level in names["levels"]] == [(8, 8), (4, 4)]
    exec(compile(lines["Python · zarr"], "zarr", "exec"), names)  # noqa: S102
    assert names["group"]["1"].shape == (4, 4)
    assert {"napari", "Neuroglancer"} <= lines.keys()
