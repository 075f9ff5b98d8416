"""NCO and R, which read by netCDF-C, open datasets over DAP2 and DAP4 and as NetCDF files, subset them on the server, and see what is
stored. R reads tables too."""

import subprocess

import netCDF4
import numpy
import pytest
import requests
import zarr

import datasets
import processes
import table

FORMS = ["dap2", "dap4", "netcdf"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("nco")
    datasets.write_climate(root)
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


@pytest.fixture
def place(server, tmp_path, form):
    """What a program opens."""
    url = f"{server.base}/dap/data/climate3"
    if form != "netcdf":
        return url if form == "dap2" else f"{url}#dap4"
    answer = requests.get(server.data("data", "climate3"), params={"format": "nc"}, timeout=processes.SECONDS)
    (tmp_path / "climate.nc").write_bytes(answer.content)
    return str(tmp_path / "climate.nc")


def stored(root, name):
    return zarr.open_array(f"{root}/climate3/{name}", mode="r")[...]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, timeout=60, text=True).stdout


@pytest.mark.parametrize("form", FORMS)
def test_nco_subsets_by_index_and_by_coordinate(place, root, tmp_path):
    part = tmp_path / "part.nc"
    # Numbers with a point are values of the coordinate: its latitudes are 80, 70, … 0.
    hyperslab = ["-d", "time,2,8,3", "-d", "lat,30.,60.", "-d", "lon,1,4"]
    run(table.program("ncks"), "-O", "-v", "air,rain", *hyperslab, place, part)
    with netCDF4.Dataset(part) as read:
        read.set_auto_maskandscale(False)
        for name in ["air", "rain"]:
            numpy.testing.assert_array_equal(read[name][...], stored(root, name)[2:9:3, 2:6, 1:5])
        numpy.testing.assert_array_equal(read["lat"][...], stored(root, "lat")[2:6])
        assert read["air"].scale_factor == datasets.ENCODING["air"]["scale_factor"]


@pytest.mark.parametrize("form", FORMS)
def test_nco_computes_from_the_values(place, root, tmp_path):
    mean = tmp_path / "mean.nc"
    run(table.program("ncwa"), "-O", "-v", "height", "-a", "lat", place, mean)
    with netCDF4.Dataset(mean) as read:
        read.set_auto_maskandscale(False)
        exact = stored(root, "height").astype("float64").mean(axis=0)
        # NCO gives the mean the type of the variable.
        assert numpy.abs(read["height"][...] - exact).max() <= 1


READ = """
    library(ncdf4)
    place <- commandArgs(trailingOnly = TRUE)[1]
    file <- nc_open(place)
    part <- ncvar_get(file, "air", start = c(2, 3, 4), count = c(3, 2, 5), raw_datavals = TRUE)
    cat(dim(part), as.vector(part), sep = "\n")
    cat(ncvar_get(file, "lat"), ncatt_get(file, "air", "units")$value, sep = "\n")
"""


@pytest.mark.parametrize("form", FORMS)
def test_r_reads_a_part(place, root):
    read = run(table.program("Rscript"), "-e", READ, place).split()
    # Dimensions of R are in the order of Fortran: lon, lat, time.
    assert read[:3] == ["3", "2", "5"]
    expected = stored(root, "air")[3:8, 2:4, 1:4]
    numpy.testing.assert_array_equal(numpy.array(read[3:33], "int64"), expected.ravel())
    numpy.testing.assert_array_equal(numpy.array(read[33:42], "float64"), stored(root, "lat"))
    assert read[42] == "K"


def test_r_reads_a_table(server, root):
    url = f"{server.data('data', 'climate3/height')}?format=csv&coords=1&sel.lat=60..80"
    script = "found <- read.csv(commandArgs(trailingOnly = TRUE)[1]); cat(names(found), found$lat, found$lon, found$height, sep = '\\n')"
    read = run(table.program("Rscript"), "-e", script, url).split()
    expected = stored(root, "height")[:3]
    rows = expected.size
    assert read[:3] == ["lat", "lon", "height"]
    numbers = numpy.array(read[3:], "float64").reshape(3, rows)
    numpy.testing.assert_array_equal(numbers[0], numpy.repeat(stored(root, "lat")[:3], 7))
    numpy.testing.assert_array_equal(numbers[1], numpy.tile(stored(root, "lon"), 3))
    numpy.testing.assert_array_equal(numbers[2], expected.ravel())


@pytest.mark.parametrize("program", [["ncks", "-m"], ["Rscript", "-e", "library(ncdf4); nc_open(commandArgs(trailingOnly = TRUE)[1])"]])
def test_a_dataset_that_is_not_there_is_an_error_that_can_be_read(server, program):
    name, *arguments = program
    command = [table.program(name), *arguments, f"{server.base}/dap/data/none"]
    ended = subprocess.run(command, capture_output=True, timeout=60, text=True)
    assert ended.returncode != 0
    assert "none" in ended.stderr, ended.stderr
