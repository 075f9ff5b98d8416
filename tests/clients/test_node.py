"""Clients that run in Node open `/store/…` like any address, and read what zarr-python wrote."""

import numpy
import pytest

import clients
import images
import programs
from arrays import ARRAYS, FORMATS, path
from programs import array

# Of those with shards, the others have their index where this client does not read it. It has no complex numbers, and
# halves only where Node has them.
ZARRITA = [
    "v3_sharded",
    "v3_sharded_sparse",
    "v3_zstd_missing_nan",
    "v3_blosc_big_endian",
    "v3_bool_v2_keys",
    "v3_scalar",
    "v2_blosc",
    "v2_fortran",
    "v2_fortran_slashes",
    "v2_big_endian",
    "v2_bool",
    "v2_scalar",
]
# This one knows v2 alone, numbers of up to 32 bits, and two compressors.
ZARRJS = ["v2_blosc", "v2_fortran"]


@pytest.fixture(scope="session")
def read(tmp_path_factory):
    """Reads by a client what is at paths of a store."""
    folder = programs.of_node(tmp_path_factory.mktemp("programs"))
    with programs.running("node", folder / "read.mjs") as ask:
        yield lambda client, url, *paths: ask({"client": client, "url": url.rstrip("/"), "paths": paths})


@pytest.mark.parametrize(
    ("client", "names"),
    [
        pytest.param("zarrita", ZARRITA, marks=pytest.mark.client("zarrita (Node)", "read")),
        pytest.param("zarrita-suffix", ZARRITA, marks=pytest.mark.client("zarrita (Node), suffix ranges", "read")),
        pytest.param("zarr.js", ZARRJS, marks=pytest.mark.client("zarr.js", "read")),
    ],
)
def test_an_array_reads_equal(server, mount, read, client, names):
    found = read(client, server.store(mount), *map(path, names))
    for name, values in zip(names, found, strict=True):
        clients.assert_same(array(values), ARRAYS[name].values)


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.client("zarrita (Node)", "read", "list")
def test_an_array_of_a_consolidated_hierarchy_reads_equal(server, backend, read, zarr_format):
    outer, inner = FORMATS[zarr_format].split("/")
    names = [name for name in ZARRITA if ARRAYS[name].zarr_format == zarr_format]
    url = server.store(f"consolidated-{backend}", outer)
    contents, *found = read("zarrita-consolidated", url, "", *(f"{inner}/{name}" for name in names))
    everything = {"/", f"/{inner}"} | {f"/{path(name).split('/', 1)[1]}" for name in ARRAYS if ARRAYS[name].zarr_format == zarr_format}
    assert {node["path"] for node in contents["contents"]} == everything
    for name, values in zip(names, found, strict=True):
        clients.assert_same(array(values), ARRAYS[name].values)


@pytest.fixture(scope="module", params=images.VERSIONS)
def image(server, writable, request, tmp_path_factory):
    """A store with an image in it, and the path of that."""
    folder = tmp_path_factory.mktemp("image")
    name = f"image-{request.param}"
    images.write(folder / name, request.param)
    server.upload(folder, writable)
    return server.store(writable), name


@pytest.mark.client("Viv", "read")
def test_viv_reads_every_plane_of_every_level(image, read):
    [levels] = read("viv", *image)
    for level, values in zip(levels, images.LEVELS, strict=True):
        clients.assert_same(array(level), values)


@pytest.mark.parametrize("image", ["0.4"], indirect=True)
@pytest.mark.client("zarr.js", "read")
def test_zarr_js_reads_every_level(image, read):
    url, name = image
    levels = read("zarr.js", url, *(f"{name}/{level}" for level in range(len(images.LEVELS))))
    for level, values in zip(levels, images.LEVELS, strict=True):
        clients.assert_same(array(level), values)


@pytest.mark.client("ome-zarr.js", "read")
def test_ome_zarr_js_renders_the_channels_as_the_image_says(image, read):
    [levels] = read("ome-zarr.js", *image)
    for level, (red, green) in zip(levels, [values[:, 1] for values in images.LEVELS], strict=True):
        rest = numpy.zeros_like(red)
        clients.assert_same(array(level), numpy.stack([red, green, rest, rest + 255], axis=-1))
