"""Clients open arrays of one level as images with coarser levels, of either version of OME-Zarr."""

import json
import urllib.parse
import warnings

import numpy
import ome_zarr.io
import ome_zarr.reader
import ome_zarr_models.v04
import ome_zarr_models.v05
import pytest
import requests
import zarr

import arrays
import clients
import table
import wire
from processes import SECONDS
from programs import array
from test_node import read as read_in_node  # noqa: F401 (a fixture)

FORMATS = {2: "0.4", 3: "0.5"}
SHAPE = (3, 300, 520)
TYPES = {"uint16": "uint16", "float16": "float32", "int64": "float64"}
"""Types, and what they are for clients that do not hold them."""

# Both formats are there. A client that does not choose one gets v3, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore")


def halved(values):
    """The means of windows of two rows and two columns, rounded half to even, by numpy."""
    rows, columns = values.shape[-2:]
    result = numpy.empty((*values.shape[:-2], -(-rows // 2), -(-columns // 2)), values.dtype)
    for row in range(result.shape[-2]):
        for column in range(result.shape[-1]):
            window = values[..., 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].astype("float64")
            mean = window.mean(axis=(-2, -1))
            result[..., row, column] = mean if values.dtype.kind == "f" else numpy.round(mean)
    return result


def levels(values):
    found = [values]
    while max(found[-1].shape[-2:]) > 256:
        found.append(halved(found[-1]))
    return found


@pytest.fixture(scope="module")
def values():
    """The levels of each array, by its name."""
    small = {name: (arrays.values("uint16", *SHAPE) % 1000).astype(name) for name in TYPES}
    return {name: levels(small[name]) for name in TYPES}


@pytest.fixture(scope="module")
def store(server, backend, values, tmp_path_factory):
    """A mount with the arrays, each of one level: in shards, and of each version."""
    folder = tmp_path_factory.mktemp("single")
    with warnings.catch_warnings(action="ignore"):
        for name, (first, *_) in values.items():
            sharded = zarr.create_array(
                folder / f"v3/{name}", shape=SHAPE, chunks=(1, 100, 128), shards=(3, 300, 256), dtype=name
            )
            plain = zarr.create_array(
                folder / f"v2/{name}", shape=SHAPE, chunks=(1, 100, 128), dtype=name, zarr_format=2
            )
            sharded[...] = plain[...] = first
    server.upload(folder, f"writable-{backend}", "single/")
    return f"writable-{backend}"


def pyramid(server, mount, key, recipe="mean/auto/zstd-1"):
    return server.store(mount, f"{recipe}/single/{key}").replace("/store/", "/pyramid/", 1)


@pytest.mark.parametrize("zarr_format", FORMATS)
@clients.with_each_reader
def test_every_level_reads_equal_in_either_format(server, store, values, read, zarr_format):
    for name, expected in values.items():
        for stored in ["v2", "v3"]:
            root = pyramid(server, store, f"{stored}/{name}/")
            for level, of_level in enumerate(expected):
                clients.assert_same(read(root, f"{level}", zarr_format), of_level)


@pytest.mark.parametrize("stored", ["v2", "v3"])
@pytest.mark.client("ome-zarr-py", "read")
def test_ome_zarr_py_finds_every_level(server, store, values, stored):
    for name, expected in values.items():
        location = ome_zarr.io.parse_url(pyramid(server, store, f"{stored}/{name}"))
        assert location.fmt.version == "0.5"
        (image,) = ome_zarr.reader.Reader(location)()
        assert [axis["name"] for axis in image.metadata["axes"]] == ["z", "y", "x"]
        assert [level.shape for level in image.data] == [level.shape for level in expected]
        for level, of_level in zip(image.data, expected, strict=True):
            numpy.testing.assert_array_equal(level.compute(), of_level)


@pytest.mark.client("zarrita (Node)", "read")
def test_zarrita_reads_types_that_browsers_hold(server, store, values, read_in_node):
    for name, cast in TYPES.items():
        root = pyramid(server, store, f"v3/{name}", "mean/1,64,64/raw/dtype=safe")
        found = read_in_node("zarrita", root, *map(str, range(len(values[name]))))
        for level, of_level in zip(found, values[name], strict=True):
            clients.assert_same(array(level), of_level.astype(cast))


def test_both_versions_of_the_metadata_describe_the_same_levels(server, store):
    root = pyramid(server, store, "v3/uint16")
    new = requests.get(f"{root}/zarr.json", timeout=SECONDS).json()["attributes"]["ome"]
    old = requests.get(f"{root}/.zattrs", timeout=SECONDS).json()
    (one,), (other,) = new["multiscales"], old["multiscales"]
    assert (new["version"], other.pop("version")) == ("0.5", "0.4")
    assert one == other
    assert [level["path"] for level in one["datasets"]] == ["0", "1", "2"]


MODELS = {2: ome_zarr_models.v04.Image, 3: ome_zarr_models.v05.Image}


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("stored", ["v2", "v3"])
@pytest.mark.client("ome-zarr-models", "read")
def test_ome_zarr_models_finds_the_image_valid(server, store, values, stored, zarr_format):
    for method in ["mean", "mean;range=0,1000"]:
        root = pyramid(server, store, f"{stored}/uint16", f"{method}/auto/zstd-1")
        image = MODELS[zarr_format].from_zarr(zarr.open_group(root, mode="r", zarr_format=zarr_format))
        attributes = image.ome_attributes if zarr_format == 3 else image.attributes
        (multiscale,) = attributes.multiscales
        assert [level.path for level in multiscale.datasets] == [str(level) for level in range(len(values["uint16"]))]
        shapes = [image.members[level.path].shape for level in multiscale.datasets]
        assert shapes == [level.shape for level in values["uint16"]]


@pytest.mark.parametrize("stored", ["v2", "v3"])
@pytest.mark.client("napari-ome-zarr", "read")
def test_napari_reads_every_level(server, store, values, stored):
    plugin = table.module("napari_ome_zarr")
    for name, expected in values.items():
        root = pyramid(server, store, f"{stored}/{name}", "mean;range=0,1000/auto/zstd-1")
        ((shown, layer, kind),) = plugin.napari_get_reader(root)(root)
        assert (kind, layer["contrast_limits"], layer["axis_labels"]) == ("image", [0, 1000], ("z", "y", "x"))
        for level, of_level in zip(shown, expected, strict=True):
            numpy.testing.assert_array_equal(level.compute(), of_level)


@pytest.mark.client("Viv", "read")
def test_viv_reads_every_plane_of_every_level(server, store, values, read_in_node):
    for name, cast in TYPES.items():
        for stored in ["v2", "v3"]:
            root = pyramid(server, store, stored, "mean;range=0,1000/1,64,64/raw/dtype=safe")
            (found,) = read_in_node("viv", root, name)
            for level, of_level in zip(found, values[name], strict=True):
                clients.assert_same(array(level), of_level.astype(cast))


BLOCK, SIDE = 16, 1024
"""Squares of one value each, so that coarser levels have the same values."""

# Whatever the type, elements are grey as they are.
SHADERS = {"uint16": "float(toRaw(getDataValue()))", "float16": "getDataValue()", "int64": "getDataValue()"}
# Neuroglancer has neither float16 nor int64.
CASTS = {"uint16": "", "float16": "/dtype=float32", "int64": "/dtype=float32"}


@pytest.fixture(scope="module")
def blocks(server, backend, tmp_path_factory):
    """The values of the squares, which are arrays of one level in the store."""
    folder = tmp_path_factory.mktemp("blocks")
    squares = arrays.values("uint8", SIDE // BLOCK, SIDE // BLOCK)
    values = numpy.kron(squares, numpy.ones((2, BLOCK, BLOCK), "uint8")).reshape(2, SIDE, SIDE)
    with warnings.catch_warnings(action="ignore"):
        for name in TYPES:
            options = {"shape": values.shape, "chunks": (1, 128, 128), "dtype": name}
            sharded = zarr.create_array(folder / f"v3/{name}", shards=(2, 512, 512), **options)
            plain = zarr.create_array(folder / f"v2/{name}", zarr_format=2, **options)
            sharded[...] = plain[...] = values.astype(name)
    server.upload(folder, f"writable-{backend}", "blocks/")
    return squares


@pytest.mark.parametrize("stored", ["v2", "v3"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.client("Neuroglancer", "read")
def test_neuroglancer_shows_the_coarser_levels(server, backend, blocks, browse, screenshots, stored, name):
    with wire.tap(server.base) as tapped:
        root = f"{tapped.base}/pyramid/writable-{backend}/mean/1,256,256/raw{CASTS[name]}/blocks/{stored}/{name}"
        state = {
            "layers": [
                {
                    "type": "image",
                    "name": "image",
                    "source": f"{root}/|zarr3:",
                    "shader": f"void main() {{ emitGrayscale({SHADERS[name]} / 255.0); }}",
                }
            ],
            "dimensions": {dimension: [1, ""] for dimension in "zyx"},
            "position": [0, SIDE / 2 - 0.5, SIDE / 2 - 0.5],
            "displayDimensions": ["x", "y", "z"],
            "crossSectionScale": 2,
            "layout": "xy",
            "showAxisLines": False,
            "showScaleBar": False,
            "showDefaultAnnotations": False,
        }
        png = screenshots / f"neuroglancer-pyramid-{backend}-{stored}-{name}.png"
        shown = browse("neuroglancer", "!" + urllib.parse.quote(json.dumps(state)), png)
        lines = [line for line, _ in tapped.requests]
    assert any("/1/c/" in line for line in lines)
    assert not any("/0/c/" in line for line in lines)
    panel, screen = shown["finished"], array(shown["screenshot"])
    rows, columns = (
        (panel[start] + panel[length] / 2 + (numpy.arange(SIDE // BLOCK) + 0.5 - SIDE / BLOCK / 2) * BLOCK / 2).astype(int)
        for start, length in zip("yx", ("height", "width"))
    )
    clients.assert_same(screen[rows][:, columns, :3], numpy.stack([blocks] * 3, axis=-1))
