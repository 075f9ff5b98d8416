"""DAP2: netCDF-C, its tools, xarray, pydap and GDAL open a URL of the server and read what is stored, whole and in part."""

import json
import subprocess

import netCDF4
import numpy
import pydap.client
import pytest
import requests
import xarray
import zarr

import datasets
import processes
import table

pytestmark = pytest.mark.filterwarnings("ignore")

EXACT = [name for name in datasets.NUMBERS if name not in ("int64", "uint64")]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("dap")
    datasets.write_types(root)
    datasets.write_climate(root)
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


def url(server, path):
    return f"{server.base}/dap/data/{path}"


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
@pytest.mark.parametrize("name", EXACT)
def test_netcdf_c_reads_every_type_of_number(server, name, zarr_format):
    values = datasets.NUMBERS[name]
    with netCDF4.Dataset(url(server, f"types{zarr_format}")) as read:
        variable = read[name]
        variable.set_auto_mask(False)
        assert variable.dimensions == datasets.DIMENSIONS
        numpy.testing.assert_array_equal(variable[...], values.astype("float64"))
        numpy.testing.assert_array_equal(variable[1:4:2, :, 1], values[1:4:2, :, 1].astype("float64"))
        numpy.testing.assert_array_equal(read["x"][...], numpy.arange(5) * 10)


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_pydap_reads_every_type(server, zarr_format):
    read = pydap.client.open_url(url(server, f"types{zarr_format}"), protocol="dap2")
    for name in EXACT:
        values = datasets.NUMBERS[name]
        found = numpy.asarray(read[name].array[...].data)
        numpy.testing.assert_array_equal(found.astype("float64"), values.astype("float64"))
        part = numpy.asarray(read[name].array[1:4:2, 0:3, 1:2].data)
        numpy.testing.assert_array_equal(part.astype("float64"), values[1:4:2, 0:3, 1:2].astype("float64"))


@pytest.mark.parametrize("fill", [numpy.inf, -numpy.inf])
def test_a_fill_value_of_infinity_is_read(server, root, fill):
    array = zarr.create_array(root / f"infinite{fill}", shape=2, dtype="float64", fill_value=fill, zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    array[0] = 1.0
    name = f"infinite{fill}"
    found = pydap.client.open_url(url(server, name), protocol="dap2")[name]
    assert found.attributes["_FillValue"] == fill
    numpy.testing.assert_array_equal(numpy.asarray(found[:].data), [1.0, fill])
    with netCDF4.Dataset(url(server, name)) as read:
        assert read[name].getncattr("_FillValue") == fill


def test_integers_of_64_bits_are_never_rounded(server):
    """They are of all magnitudes here, so that no type of DAP2 has them: they are left out, and the description says so."""
    described = requests.get(url(server, "types3.info"), timeout=processes.SECONDS).text
    left_out = described.split("Left out:")[1]
    assert "int64:" in left_out and "uint64:" in left_out
    descriptor = requests.get(url(server, "types3.dds"), timeout=processes.SECONDS).text
    assert "int64" not in descriptor.replace("uint64", "int64")


@pytest.mark.parametrize("engine", ["netcdf4", "pydap"])
@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_xarray_reads_the_same_dataset(server, root, zarr_format, engine):
    expected = datasets.stored(root, zarr_format).drop_vars("level")
    found = xarray.open_dataset(url(server, f"climate{zarr_format}"), engine=engine)
    assert set(found.data_vars) >= {"air", "rain", "land", "height"}
    for name in ["air", "rain", "height", "time", "lat", "lon"]:
        xarray.testing.assert_equal(found[name].load().drop_vars("level", errors="ignore"), expected[name])
    assert numpy.array_equal(found["land"].values.astype(bool), expected["land"].values)
    for chosen in datasets.selections(zarr_format, {"time": 12, "lat": 9, "lon": 7}, 8):
        part = xarray.open_dataset(url(server, f"climate{zarr_format}"), engine=engine)["air"].isel(chosen)
        xarray.testing.assert_equal(part.load().drop_vars("level", errors="ignore"), expected["air"].isel(chosen))


def test_ncdump_and_nccopy_open_the_url(server, root, tmp_path):
    copied = tmp_path / "copied.nc"
    subprocess.run([table.program("nccopy"), url(server, "climate3"), copied], check=True, timeout=60)
    head = subprocess.run(
        [table.program("ncdump"), "-h", url(server, "climate3")], check=True, capture_output=True, timeout=60
    ).stdout.decode()
    assert "short air(time, lat, lon)" in head and "air:_FillValue = -32768s" in head
    with netCDF4.Dataset(copied) as read:
        read.set_auto_maskandscale(False)
        values = zarr.open_array(f"{root}/climate3/air", mode="r")[...]
        numpy.testing.assert_array_equal(read["air"][...], values)


def test_gdal_opens_the_url(server, root):
    command = [table.program("gdalinfo"), "-json", "-checksum", f'NETCDF:"{url(server, "climate3")}":height']
    read = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert read["size"] == [7, 9]


def test_an_array_is_a_dataset_with_its_coordinates(server, root):
    with netCDF4.Dataset(url(server, "climate3/rain")) as read:
        assert {"rain", "time", "lat", "lon"} <= set(read.variables)


def test_texts_are_strings(server):
    read = pydap.client.open_url(url(server, "types3"), protocol="dap2")
    # pydap decodes ASCII alone.
    found = [bytes(text) for text in numpy.asarray(read["fixed"][...].data).ravel()]
    assert found == list(datasets.OTHERS["fixed"])
    with netCDF4.Dataset(url(server, "types3/unicode")) as read:
        found = [str(text) for text in read["unicode"][...]]
    # netCDF-C takes a backslash in a text for an escape.
    assert found == [text.replace("\\", "") for text in datasets.OTHERS["unicode"]]


def test_errors_are_error_objects_with_the_status(server):
    for path, status in [
        ("none.dds", 404),
        ("climate3.dods?none", 400),
        ("climate3.dods?air[0:1:99][0][0]", 400),
        ("climate3.dods?air[0", 400),
        ("climate3.dods?air&time>3", 400),
    ]:
        answer = requests.get(url(server, path), timeout=processes.SECONDS)
        assert answer.status_code == status, path
        assert answer.headers["content-description"] == "dods-error"
        assert answer.text.startswith("Error {") and f"code = {status};" in answer.text


def test_the_order_is_that_of_the_dataset(server):
    one = requests.get(url(server, "climate3.dods?lat,time"), timeout=processes.SECONDS).content
    other = requests.get(url(server, "climate3.dods?time,lat"), timeout=processes.SECONDS).content
    assert one == other


def test_values_are_text_too(server):
    text = requests.get(url(server, "climate3.ascii?lat[0:1:2]"), timeout=processes.SECONDS).text
    assert text == "Dataset: climate3\nlat, 80, 70, 60\n"
