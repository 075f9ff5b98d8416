"""DAP4: netCDF-C, its tools, xarray and pydap open a URL of the server, with groups, integers of 64 bits and checksums, and read what
is stored, whole and in part."""

import json
import subprocess
import zlib

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


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("dap4")
    datasets.write_types(root)
    datasets.write_climate(root)
    climate = datasets.climate()
    groups = {"/": climate[["lat", "lon"]], "/deep": climate[["air", "land"]], "/deep/er": climate[["height"]]}
    xarray.DataTree.from_dict(groups).to_zarr(
        f"{root}/tree", consolidated=False, zarr_format=3, write_inherited_coords=False
    )
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


def url(server, path):
    return f"{server.base}/dap/data/{path}"


def of_netcdf_c(server, path):
    return f"{url(server, path)}#dap4"


def opened(server, path, engine):
    """The dataset in xarray. A URL of the scheme `dap4`, which xarray gives to pydap, is tried as HTTPS first, for seconds."""
    if engine == "netcdf4":
        return xarray.open_dataset(of_netcdf_c(server, path), engine=engine)
    read = pydap.client.open_url(url(server, path), protocol="dap4")
    return xarray.open_dataset(xarray.backends.PydapDataStore(read, protocol="dap4"))


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_xarray_loads_texts(server, zarr_format):
    with xarray.open_dataset(of_netcdf_c(server, f"types{zarr_format}"), engine="netcdf4") as read:
        for name, values in datasets.OTHERS.items():
            if name != "unicode":
                expected = [text.decode() if isinstance(text, bytes) else text for text in values]
                assert [str(text) for text in read[name].load().values] == expected, name


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_netcdf_c_reads_every_type_of_number(server, zarr_format):
    with netCDF4.Dataset(of_netcdf_c(server, f"types{zarr_format}")) as read:
        read.set_auto_maskandscale(False)
        for name, values in datasets.NUMBERS.items():
            variable = read[name]
            assert variable.dimensions == datasets.DIMENSIONS
            # Truth values are integers, and halves are sent as floats.
            found = variable[...].astype(values.dtype)
            assert values.dtype.kind not in "iu" or variable.dtype == values.dtype, name
            numpy.testing.assert_array_equal(found, values)
            numpy.testing.assert_array_equal(variable[1:4:2, :, 1].astype(values.dtype), values[1:4:2, :, 1])
        for name, values in datasets.OTHERS.items():
            if name != "unicode":
                found = [str(text) for text in read[name][...]]
                assert found == [text.decode() if isinstance(text, bytes) else text for text in values]


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_pydap_reads_every_type_of_number(server, zarr_format):
    read = pydap.client.open_url(url(server, f"types{zarr_format}"), protocol="dap4")
    for name, values in datasets.NUMBERS.items():
        numpy.testing.assert_array_equal(numpy.asarray(read[name][...].data).astype(values.dtype), values)
        part = numpy.asarray(read[name][1:4:2, 0:3, 1:2].data)
        numpy.testing.assert_array_equal(part.astype(values.dtype), values[1:4:2, 0:3, 1:2])


@pytest.mark.parametrize("engine", ["netcdf4", "pydap"])
@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_xarray_reads_the_same_dataset(server, root, zarr_format, engine):
    expected = datasets.stored(root, zarr_format).drop_vars("level")
    found = opened(server, f"climate{zarr_format}", engine)
    for name in ["air", "rain", "land", "height", "time", "lat", "lon"]:
        read = found[name].load().drop_vars("level", errors="ignore")
        xarray.testing.assert_equal(read.astype(expected[name].dtype), expected[name])
    for chosen in datasets.selections(zarr_format, {"time": 12, "lat": 9, "lon": 7}, 8):
        part = opened(server, f"climate{zarr_format}", engine)["air"].isel(chosen)
        xarray.testing.assert_equal(part.load().drop_vars("level", errors="ignore"), expected["air"].isel(chosen))


def test_groups_are_groups(server, root):
    found = xarray.open_datatree(of_netcdf_c(server, "tree"), engine="netcdf4")
    stored = xarray.open_datatree(f"{root}/tree", engine="zarr", consolidated=False)
    assert [node.path for node in found.subtree] == [node.path for node in stored.subtree]
    read = pydap.client.open_url(url(server, "tree"), protocol="dap4")
    for path, names in [("/", ["lat", "lon"]), ("/deep", ["air", "time"]), ("/deep/er", ["height"])]:
        for name in names:
            one, other = found[path][name], stored[path][name]
            assert one.dims == other.dims
            numpy.testing.assert_array_equal(one.values, other.values)
            if name != "time":
                values = numpy.asarray(read[f"{path.rstrip('/')}/{name}"][...].data)
                numpy.testing.assert_array_equal(values, other.values)


def test_ncdump_and_nccopy_open_the_url(server, root, tmp_path):
    copied = tmp_path / "copied.nc"
    subprocess.run([table.program("nccopy"), of_netcdf_c(server, "climate3"), copied], check=True, timeout=60)
    head = subprocess.run(
        [table.program("ncdump"), "-h", of_netcdf_c(server, "climate3")], check=True, capture_output=True, timeout=60
    ).stdout.decode()
    assert "short air(time, lat, lon)" in head and "int64 time(time)" in head
    with netCDF4.Dataset(copied) as read:
        read.set_auto_maskandscale(False)
        values = zarr.open_array(f"{root}/climate3/air", mode="r")[...]
        numpy.testing.assert_array_equal(read["air"][...], values)


def test_gdal_opens_the_url(server):
    command = [table.program("gdalinfo"), "-json", "-checksum", f'NETCDF:"{of_netcdf_c(server, "climate3")}":height']
    read = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert read["size"] == [7, 9]


def test_checksums_are_those_of_zlib(server, root):
    values = zarr.open_array(f"{root}/climate3/air", mode="r")[2:9:3, 4]
    answer = requests.get(url(server, "climate3.dap?dap4.ce=/air[2:3:8][4][]"), timeout=processes.SECONDS)
    body, content = answer.content, b""
    while body:
        length = int.from_bytes(body[1:4], "big")
        content, body = content + body[4 : 4 + length], body[4 + length :]
    assert content.endswith(values.tobytes() + zlib.crc32(values.tobytes()).to_bytes(4, "little"))


def test_errors_can_be_read(server):
    with pytest.raises(OSError):
        netCDF4.Dataset(of_netcdf_c(server, "none"))
    answer = requests.get(url(server, "climate3.dap?dap4.ce=/none"), timeout=processes.SECONDS)
    assert answer.status_code == 400 and "there is: /lat, " in answer.text
    with pytest.raises(Exception, match="400 Client Error"):
        pydap.client.open_url(url(server, "climate3") + "?dap4.ce=/none", protocol="dap4")
