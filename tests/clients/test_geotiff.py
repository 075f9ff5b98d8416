"""`format=tiff` is a plane at its place, with the values that xarray reads, to GDAL."""

import json
import os
import pathlib
import sqlite3
import subprocess

import numpy
import pytest
import rasterio
import rasterio.windows
import requests
import xarray

import processes
import table

pytestmark = pytest.mark.filterwarnings("ignore")

TYPES = {
    **{name: name for name in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"]},
    **{"bool": "int8", "float16": "float32"},
}
# Systems without a code: the attributes of their grid mappings, and those of the coordinates.
SYSTEMS = {
    "sphere": ({"grid_mapping_name": "latitude_longitude", "earth_radius": 6371229.0}, "degrees", "+proj=longlat +R=6371229"),
    "mars": ({"crs_wkt": rasterio.crs.CRS.from_proj4("+proj=longlat +a=3396190 +rf=169.9").to_wkt(version="WKT2_2019")}, "degrees", "+proj=longlat +a=3396190 +rf=169.9"),
    "ellipsoid": ({"grid_mapping_name": "latitude_longitude", "semi_major_axis": 3396190.0, "inverse_flattening": 169.9}, "degrees", "+proj=longlat +a=3396190 +rf=169.9"),
    "laea1": ({"crs_wkt": rasterio.crs.CRS.from_proj4("+proj=laea +lat_0=10 +lon_0=20 +ellps=GRS80").to_wkt(version="WKT1_GDAL")}, "m", "+proj=laea +lat_0=10 +lon_0=20 +ellps=GRS80"),
    "laea2": ({"crs_wkt": rasterio.crs.CRS.from_proj4("+proj=laea +lat_0=10 +lon_0=20 +ellps=GRS80").to_wkt(version="WKT2_2019")}, "m", "+proj=laea +lat_0=10 +lon_0=20 +ellps=GRS80"),
}
# Texts that have a meaning in XML, or none.
TEXTS = ["a & b <c>", "x ]]> y", "&amp; &#65;", "µm é \U0001f600", "a\"b'c"]
UTM = 'PROJCS["WGS 84 / UTM zone 33N",GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]],AUTHORITY["EPSG","32633"]]'


def grids():
    """Grids of each orientation: the coordinates, their attributes, and where the corner and the pixels are."""
    degrees = {"units": "degrees_north"}, {"units": "degrees_east"}
    metres = {"standard_name": "projection_y_coordinate", "units": "m"}, {"standard_name": "projection_x_coordinate", "units": "m"}
    return {
        "north_up": (numpy.arange(60, 30, -2.5), numpy.arange(-10, 25, 5.0), degrees, "EPSG:4326", [-12.5, 5, 0, 61.25, 0, -2.5]),
        "south_up": (numpy.arange(30.0, 60, 2.5), numpy.arange(0, 35, 5.0), degrees, "EPSG:4326", [-2.5, 5, 0, 58.75, 0, -2.5]),
        "westward": (numpy.arange(30.0, 60, 2.5), numpy.arange(30, -5, -5.0), degrees, "EPSG:4326", [-2.5, 5, 0, 58.75, 0, -2.5]),
        "single": ((numpy.arange(12) * 0.1 + 45.1).astype("float32"), (numpy.arange(7) * 0.1).astype("float32"), degrees, "EPSG:4326", [-0.05, 0.1, 0, 46.25, 0, -0.1]),
        "utm": (5e6 + 10.0 * numpy.arange(12), 5e5 + 10.0 * numpy.arange(7), metres, "EPSG:32633", [499_995, 10, 0, 5_000_115, 0, -10]),
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("geotiff")
    rng = numpy.random.default_rng(5)
    for name, (lat, lon, attributes, *_) in grids().items():
        values = rng.uniform(-100, 100, (2, 12, 7))
        variables = {kind: (("time", "lat", "lon"), (abs(values) if kind.startswith("u") else values).astype(kind), {"grid_mapping": "crs"}) for kind in TYPES}
        variables["packed"] = ("time", "lat", "lon"), numpy.where(values > 80, numpy.nan, values), {"units": "K", "grid_mapping": "crs"}
        crs = {"crs_wkt": UTM} if name == "utm" else {"grid_mapping_name": "latitude_longitude"}
        variables["crs"] = (), numpy.int64(0), crs
        dataset = xarray.Dataset(variables, {"lat": ("lat", lat, attributes[0]), "lon": ("lon", lon, attributes[1]), "time": [0, 1]})
        packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -32768}
        for version in (2, 3):
            dataset.to_zarr(root / f"{name}{version}", zarr_format=version, consolidated=False, encoding={"packed": packed})
    for name, (crs, units, _) in SYSTEMS.items():
        north, east = ({"units": "degrees_north"}, {"units": "degrees_east"}) if units == "degrees" else ({"units": "m", "axis": "Y"}, {"units": "m", "axis": "X"})
        variables = {"v": (("lat", "lon"), numpy.zeros((3, 2), "uint8"), {"grid_mapping": "crs"}), "crs": ((), numpy.int64(0), crs)}
        xarray.Dataset(variables, {"lat": ("lat", [3.0, 2, 1], north), "lon": ("lon", [1.0, 2], east)}).to_zarr(root / name, zarr_format=3, consolidated=False)
    degrees = {"lat": ("lat", [3.0, 2, 1], {"units": "degrees_north"}), "lon": ("lon", [1.0, 2], {"units": "degrees_east"})}
    variables = {f"text{at}": (("lat", "lon"), numpy.zeros((3, 2), "uint8"), {"units": text, "long_name": text}) for at, text in enumerate(TEXTS)}
    variables["unsigned"] = ("lat", "lon"), numpy.array([[-1, -2], [0, 1], [127, -128]], "int8"), {"_Unsigned": "true", "_FillValue": -2}
    for name, value in {"scale_text": "abc", "scale_nan": "NaN", "scale_list": [1.0, 2.0]}.items():
        variables[name] = ("lat", "lon"), numpy.zeros((3, 2), "uint8"), {"scale_factor": value, "add_offset": value}
    xarray.Dataset(variables, degrees).to_zarr(root / "other", zarr_format=3, consolidated=False)
    return root


@pytest.fixture(scope="module")
def server(root):
    with processes.zarrd(f"data={root}") as running:
        yield running


def fetch(server, path, to, **query):
    answer = requests.get(server.data("data", path), params={"format": "tiff", "isel.time": 1, **query}, timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/tiff"
    assert int(answer.headers["content-length"]) == len(answer.content)
    file = to / "plane.tif"
    file.write_bytes(answer.content)
    return file


def gdal(program, *arguments):
    done = subprocess.run([table.program(program), *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Warning" not in done.stderr and "ERROR" not in done.stderr, done.stderr
    return done.stdout


def read(file):
    """What rasterio, with a GDAL of its own, says about a file, and the values."""
    with rasterio.open(file) as opened:
        described = {
            "transform": list(opened.transform.to_gdal()),
            "epsg": opened.crs.to_epsg(),
            "type": opened.dtypes[0],
            "missing": opened.nodata,
            "unit": opened.units[0],
            "scale": (opened.scales[0], opened.offsets[0]),
        }
        return described, opened.read(1)


def northward(dataset, name):
    """A variable from north to south and from west to east."""
    return dataset[name].isel(time=1).sortby("lat", ascending=False).sortby("lon")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", grids())
def test_a_plane_is_at_its_place_from_north_to_south(server, root, tmp_path, name, version):
    *_, code, transform = grids()[name]
    described, values = read(fetch(server, f"{name}{version}/float64", tmp_path))
    assert described["transform"] == pytest.approx(transform, rel=1e-6, abs=1e-6)
    assert described["epsg"] == int(code.removeprefix("EPSG:"))
    with xarray.open_zarr(root / f"{name}{version}", consolidated=False) as dataset:
        numpy.testing.assert_array_equal(values, northward(dataset, "float64").values)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_of_number_has_the_same_values(server, root, tmp_path, kind):
    described, values = read(fetch(server, f"north_up3/{kind}", tmp_path))
    assert described["type"] == TYPES[kind]
    with xarray.open_zarr(root / "north_up3", consolidated=False) as dataset:
        numpy.testing.assert_array_equal(values, northward(dataset, kind).values.astype(TYPES[kind]), strict=True)


@pytest.mark.parametrize("version", [2, 3])
def test_packed_values_have_their_scale_their_offset_and_what_is_missing(server, root, tmp_path, version):
    described, values = read(fetch(server, f"south_up{version}/packed", tmp_path))
    assert (described["type"], described["missing"], described["unit"]) == ("int16", -32768, "K")
    assert described["scale"] == (0.01, 5)
    with xarray.open_zarr(root / f"south_up{version}", consolidated=False) as dataset:
        wanted = northward(dataset, "packed").values
    numpy.testing.assert_allclose(numpy.where(values == -32768, numpy.nan, values * 0.01 + 5), wanted, rtol=1e-12)


def test_debians_gdal_opens_a_plane_with_its_place(server, tmp_path):
    described = json.loads(gdal("gdalinfo", "-json", fetch(server, "utm3/packed", tmp_path)))
    assert described["geoTransform"] == pytest.approx(grids()["utm"][4])
    assert 'ID["EPSG",32633]' in described["coordinateSystem"]["wkt"]
    band = described["bands"][0]
    assert (band["type"], band["noDataValue"], band["scale"], band["offset"], band["unit"]) == ("Int16", -32768, 0.01, 5, "K")


def test_a_part_is_at_its_own_place_and_is_read_by_ranges(server, root, tmp_path):
    described, values = read(fetch(server, "north_up3/float32", tmp_path, **{"sel.lat": "40..50", "isel.lon": "1:6:2"}))
    assert described["transform"] == pytest.approx([-10, 10, 0, 51.25, 0, -2.5])
    with xarray.open_zarr(root / "north_up3", consolidated=False) as dataset:
        wanted = dataset.float32.isel(time=1, lon=slice(1, 6, 2)).sel(lat=slice(50, 40)).values
    numpy.testing.assert_array_equal(values, wanted)
    url = f"{server.data('data', 'north_up3/float32')}?format=tiff&isel.time=1"
    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"), rasterio.open(f"/vsicurl/{url}") as opened:
        found = opened.read(1, window=rasterio.windows.Window(3, 2, 1, 1))
    with xarray.open_zarr(root / "north_up3", consolidated=False) as dataset:
        assert found == dataset.float32[1, 2, 3].values


def systems(file):
    """The system of a file, as rasterio's GDAL and as Debian's reads it."""
    with rasterio.open(file) as opened:
        ours = opened.crs
    theirs = rasterio.crs.CRS.from_wkt(json.loads(gdal("gdalinfo", "-json", file))["coordinateSystem"]["wkt"])
    return ours, theirs


def parameters(crs):
    """The parameters of a system, without names."""
    return {key: value for key, value in crs.to_dict(projjson=False).items() if key not in ("no_defs", "type", "units", "datum")}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_without_a_code_is_what_gdal_reads(server, tmp_path, name):
    *_, expected = SYSTEMS[name]
    expected = parameters(rasterio.crs.CRS.from_proj4(expected))
    file = fetch(server, f"{name}/v", tmp_path, **{"isel.time": []})
    for found in systems(file):
        assert parameters(found) == pytest.approx(expected), found.to_wkt()


@pytest.mark.parametrize("at", range(len(TEXTS)))
def test_texts_are_what_gdal_reads(server, tmp_path, at):
    file = fetch(server, f"other/text{at}", tmp_path, **{"isel.time": []})
    with rasterio.open(file) as opened:
        assert (opened.units[0], opened.descriptions[0]) == (TEXTS[at], TEXTS[at])
    band = json.loads(gdal("gdalinfo", "-json", file))["bands"][0]
    assert (band["unit"], band["description"]) == (TEXTS[at], TEXTS[at])


def test_numbers_of_unsigned_are_those_that_xarray_reads(server, root, tmp_path):
    described, values = read(fetch(server, "other/unsigned", tmp_path, **{"isel.time": []}))
    assert (described["type"], described["missing"]) == ("uint8", 254)
    # xarray opens no dataset with a list of scale factors.
    with xarray.open_zarr(root / "other", consolidated=False, drop_variables=["scale_list"]) as dataset:
        wanted = dataset.unsigned.values
    numpy.testing.assert_array_equal(numpy.where(values == 254, numpy.nan, values), wanted)


@pytest.mark.parametrize("name", ["scale_text", "scale_nan", "scale_list"])
def test_what_is_no_finite_number_is_no_scale_and_no_offset(server, tmp_path, name):
    described, _ = read(fetch(server, f"other/{name}", tmp_path, **{"isel.time": []}))
    assert described["scale"] == (1, 0)


def test_the_units_of_codes_are_those_of_the_epsg_dataset():
    """`UPDATE=1` writes the list again, from PROJ's database."""
    database = sqlite3.connect(pathlib.Path(rasterio.__file__).parent / "proj_data" / "proj.db")
    units = {}
    for system, unit in database.execute("SELECT coordinate_system_code, uom_code FROM axis WHERE coordinate_system_auth_name = 'EPSG'"):
        units.setdefault(system, set()).add(unit)
    geographic = "SELECT code, coordinate_system_code, 'angle' FROM geodetic_crs WHERE auth_name = 'EPSG' AND type = 'geographic 2D'"
    projected = "SELECT code, coordinate_system_code, 'length' FROM projected_crs WHERE auth_name = 'EPSG'"
    names = {("angle", 9122): "degrees", ("length", 9001): "metres", ("length", 9002): "feet", ("length", 9003): "us-survey-feet"}
    codes = {name: [] for name in names.values()}
    for code, system, kind in database.execute(f"{geographic} UNION ALL {projected}"):
        unit = units.get(system, set())
        name = names.get((kind, *unit)) if len(unit) == 1 else None
        if name and 0 < int(code) < 32767:
            codes[name].append(int(code))
    lines = []
    for name, numbers in codes.items():
        runs = []
        for code in sorted(numbers):
            if runs and runs[-1][1] == code - 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
        lines.append(name)
        for first, last in runs:
            word = f" {first}" if first == last else f" {first}-{last}"
            if len(lines[-1]) + len(word) > 140:
                lines.append(name)
            lines[-1] += word
    text = "".join(line + "\n" for line in lines)
    file = pathlib.Path(__file__).parents[2] / "src" / "conventions" / "epsg.txt"
    if os.environ.get("UPDATE"):
        file.write_text(text)
    assert file.read_text() == text
