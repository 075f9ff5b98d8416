"""NetCDF files of arrays and groups, read by netCDF-C, scipy, xarray and GDAL as zarr-python and xarray read what is stored."""

import json
import subprocess

import netCDF4
import numpy
import pytest
import requests
import xarray
import zarr

import datasets
import processes
import table

pytestmark = pytest.mark.filterwarnings("ignore")

TYPES = {
    "bool": "i1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8",
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8",
    "float16": "f4", "float32": "f4", "float64": "f8",
}
CLASSIC = ["bool", "int8", "int16", "int32", "float16", "float32", "float64"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("netcdf")
    datasets.write_types(root)
    datasets.write_climate(root)
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


def fetch(server, path, to, **query):
    answer = requests.get(server.data("data", path), params={"format": "nc", **query}, timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-netcdf"
    assert int(answer.headers["content-length"]) == len(answer.content)
    file = to / "file.nc"
    file.write_bytes(answer.content)
    return file


def query_of(chosen):
    def text(index):
        return f"{index.start}:{index.stop}:{index.step}" if isinstance(index, slice) else str(index)

    return {f"isel.{name}": text(index) for name, index in chosen.items()}


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
@pytest.mark.parametrize("name", datasets.NUMBERS)
def test_every_type_of_number_has_the_same_values(server, tmp_path, name, zarr_format):
    values = datasets.NUMBERS[name]
    file = fetch(server, f"types{zarr_format}/{name}", tmp_path)
    with netCDF4.Dataset(file) as read:
        read.set_auto_maskandscale(False)
        variable = read[name]
        assert variable.dimensions == datasets.DIMENSIONS
        assert variable.dtype == numpy.dtype(TYPES[name])
        numpy.testing.assert_array_equal(variable[...], values.astype(TYPES[name]))
        assert set(read.variables) == {name, *datasets.DIMENSIONS}
        numpy.testing.assert_array_equal(read["y"][...], numpy.linspace(60, 30, 4))
        expected = "NETCDF3_64BIT_OFFSET" if name in CLASSIC else "NETCDF3_64BIT_DATA"
        assert read.data_model == expected


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
@pytest.mark.parametrize("name", datasets.OTHERS)
def test_texts_are_characters_that_clients_join(server, tmp_path, name, zarr_format):
    file = fetch(server, f"types{zarr_format}/{name}", tmp_path)
    read = xarray.open_dataset(file, engine="netcdf4")
    expected = [value.decode() if isinstance(value, bytes) else value for value in datasets.OTHERS[name]]
    found = [value.decode() if isinstance(value, bytes) else str(value) for value in read[name].values]
    assert found == expected


def test_attributes_have_their_types_and_nothing_is_lost(server, tmp_path):
    with netCDF4.Dataset(fetch(server, "types3/float32", tmp_path)) as read:
        found = read["float32"].__dict__
    for name, value in datasets.ATTRIBUTES.items():
        if name == "nested" or name == "texts":
            assert json.loads(found[name]) == value
        else:
            numpy.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("engine", ["netcdf4", "scipy"])
@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_a_group_is_the_dataset_that_xarray_reads_from_zarr(server, root, tmp_path, zarr_format, engine):
    expected = datasets.stored(root, zarr_format)
    # SciPy reads CDF-2 alone.
    file = fetch(server, f"climate{zarr_format}", tmp_path, **({"format": "nc3"} if engine == "scipy" else {}))
    found = xarray.open_dataset(file, engine=engine).load()
    found, expected = found.drop_vars("level", errors="ignore"), expected.drop_vars("level", errors="ignore")
    xarray.testing.assert_equal(found, expected)
    assert set(found.coords) == set(expected.coords)
    assert found.attrs == expected.attrs
    for name in found.variables:
        assert found[name].dtype == expected[name].dtype, name
        assert found[name].attrs.get("units") == expected[name].attrs.get("units"), name
        assert found[name].encoding.get("scale_factor") == expected[name].encoding.get("scale_factor"), name


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_a_decoded_file_has_the_values_that_xarray_decodes_with_nothing_left_to_decode(server, root, tmp_path, zarr_format):
    expected = datasets.stored(root, zarr_format).drop_vars("level", errors="ignore")
    file = fetch(server, f"climate{zarr_format}", tmp_path, decode="cf")
    found = xarray.open_dataset(file, engine="netcdf4", mask_and_scale=False).load().drop_vars("level", errors="ignore")
    assert {name for name in expected.variables if "scale_factor" in expected[name].encoding}, "nothing is packed"
    for name in found.variables:
        numpy.testing.assert_array_equal(found[name].values, expected[name].values, err_msg=name)
        assert found[name].dtype == expected[name].dtype, name
        assert not {"scale_factor", "add_offset", "missing_value"} & set(found[name].attrs), name
    # A reader that decodes finds the same.
    xarray.testing.assert_equal(xarray.open_dataset(file, engine="netcdf4").load().drop_vars("level", errors="ignore"), expected)


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
def test_random_selections_are_those_of_xarray(server, root, tmp_path, zarr_format):
    stored = datasets.stored(root, zarr_format).drop_vars("level")
    lengths = {"time": 12, "lat": 9, "lon": 7}
    for chosen in datasets.selections(zarr_format, lengths, 12):
        file = fetch(server, f"climate{zarr_format}", tmp_path, vars="air,rain", **query_of(chosen))
        found = xarray.open_dataset(file, engine="netcdf4").load()
        xarray.testing.assert_equal(found.drop_vars(["level", "crs"], errors="ignore"), stored[["air", "rain"]].isel(chosen))
        file = fetch(server, f"climate{zarr_format}/air", tmp_path, **query_of(chosen))
        found = xarray.open_dataset(file, engine="netcdf4").load()
        xarray.testing.assert_equal(found["air"].drop_vars(["level", "crs"], errors="ignore"), stored["air"].isel(chosen))


@pytest.mark.parametrize("path", ["climate3", "types3"])
def test_ncdump_and_nccopy_read_the_whole_file(server, tmp_path, path):
    file = fetch(server, path, tmp_path)
    copied = tmp_path / "copied.nc"
    subprocess.run([table.program("nccopy"), "-k", "nc4", file, copied], check=True, timeout=60)
    subprocess.run([table.program("ncdump"), file], check=True, capture_output=True, timeout=60)
    with netCDF4.Dataset(file) as one, netCDF4.Dataset(copied) as other:
        for name, variable in one.variables.items():
            variable.set_auto_maskandscale(False)
            other[name].set_auto_maskandscale(False)
            numpy.testing.assert_array_equal(variable[...], other[name][...])


@pytest.mark.parametrize("zarr_format", datasets.FORMATS)
@pytest.mark.parametrize("name", ["height", "air", "time"])
def test_gdal_reads_the_same_values(server, root, tmp_path, name, zarr_format):
    # With times in integers of 64 bits, as xarray stores them.
    file = fetch(server, f"climate{zarr_format}", tmp_path)
    command = [table.program("gdalmdiminfo"), "-detailed", "-array", name, str(file)]
    read = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    stored = zarr.open_array(f"{root}/climate{zarr_format}/{name}", mode="r")
    numpy.testing.assert_array_equal(numpy.array(read["values"]), stored[...])
    assert name != "time" or read["unit"] == stored.attrs["units"]


def test_integers_of_64_bits_become_the_smallest_type_that_has_their_values(server, root, tmp_path):
    stored = datasets.stored(root, 3)
    with netCDF4.Dataset(fetch(server, "climate3", tmp_path)) as read:
        assert (read.data_model, read["time"].dtype) == ("NETCDF3_64BIT_OFFSET", "i4")
    # Nanoseconds since 1970 are too large for 32 bits, and exact as floats.
    times = stored.time.values.astype("datetime64[ns]")
    group = zarr.open_group(root, mode="a").create_group("nanoseconds")
    group.create_array("time", data=times, dimension_names=("time",))
    with netCDF4.Dataset(fetch(server, "nanoseconds", tmp_path)) as read:
        assert (read.data_model, read["time"].dtype) == ("NETCDF3_64BIT_OFFSET", "f8")
    with xarray.open_dataset(tmp_path / "file.nc", engine="scipy") as read:
        numpy.testing.assert_array_equal(read.time.values, times)


def test_ranges_conditions_and_head_need_no_second_file(server):
    url = server.data("data", "climate3")
    query = {"format": "nc"}
    whole = requests.get(url, params=query, timeout=processes.SECONDS)
    head = requests.head(url, params=query, timeout=processes.SECONDS)
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers["etag"] == whole.headers["etag"]
    assert 'filename="climate3.nc"' in whole.headers["content-disposition"]
    parts = b""
    for start in range(0, len(whole.content), 1777):
        headers = {"range": f"bytes={start}-{start + 1776}", "if-range": whole.headers["etag"]}
        part = requests.get(url, params=query, headers=headers, timeout=processes.SECONDS)
        assert part.status_code == 206
        parts += part.content
    assert parts == whole.content
    same = requests.get(url, params=query, headers={"if-none-match": whole.headers["etag"]}, timeout=processes.SECONDS)
    assert same.status_code == 304


def test_variables_without_records_are_read_as_empty(tmp_path):
    names = {"t": numpy.zeros(0, "int64"), "v": numpy.zeros((0, 3), "int16"), "w": numpy.zeros((0, 2, 3), "float64")}
    group = zarr.create_group(tmp_path / "empty", zarr_format=3)
    for name, values in names.items():
        dimensions = ("t", "y", "x")[: values.ndim] if name != "v" else ("t", "x")
        group.create_array(name, data=values, chunks=tuple(max(1, length) for length in values.shape), dimension_names=dimensions)
    with processes.zarrd(f"data={tmp_path}") as running:
        file = fetch(running, "empty", tmp_path)
        with netCDF4.Dataset(file) as read:
            assert {name: variable.shape for name, variable in read.variables.items()} == {name: values.shape for name, values in names.items()}
        with xarray.open_dataset(file, engine="netcdf4") as read:
            assert read.v.shape == (0, 3)


def test_what_does_not_fit_in_the_classic_format_is_named(server):
    answer = requests.get(server.data("data", "types3"), params={"format": "nc3"}, timeout=processes.SECONDS)
    assert answer.status_code == 400
    assert "`uint8` (UByte)" in answer.json()["detail"]
