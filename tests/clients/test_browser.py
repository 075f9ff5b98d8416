"""Pages in Chromium use a server of another origin: Neuroglancer shows its images, others read, and scripts see what
they must. Screenshots are left in the folder `ZARRD_SCREENSHOTS`, or else in a temporary one."""

import contextlib
import http.server
import json
import urllib.parse

import numpy
import pytest
import zarr

import clients
import images
import processes
import programs
import table
import wire
from arrays import ARRAYS, path
from programs import array

SCALE = 10
"""Pixels of the screen for each of the image."""

# Whatever the channel, elements are grey as they are.
SHADER = "void main() { emitGrayscale(toNormalized(getDataValue())); }"


@pytest.fixture(scope="module")
def store(server, writable, tmp_path_factory):
    """A store with the image, in both versions, and one of its channels as an array of each format."""
    folder = tmp_path_factory.mktemp("shown")
    for version in images.VERSIONS:
        images.write(folder / "shown" / version, version)
    channel = images.PIXELS[0]
    options = {"data": channel, "chunks": (1, 16, 16)}
    zarr.create_array(folder / "shown/sharded", shards=(3, 32, 32), dimension_names=images.DIMENSIONS[1:], **options)
    zarr.create_array(folder / "shown/chunked", dimension_names=images.DIMENSIONS[1:], **options)
    zarr.create_array(folder / "shown/v2", zarr_format=2, **options)
    server.upload(folder, writable)
    return server.store(writable, "shown")


NAMED, UNNAMED = images.DIMENSIONS[1:], ("d0", "d1", "d2")
SOURCES = {
    "zarr3-sharded": ("sharded/|zarr3:", NAMED),
    "zarr3-chunked": ("chunked/|zarr3:", NAMED),
    "zarr2": ("v2/|zarr2:", UNNAMED),
    "zarr": ("sharded/|zarr:", NAMED),
    "detected": ("sharded/", NAMED),
    "detected-v2": ("v2/", UNNAMED),
    "detected-without-a-slash": ("sharded", NAMED),
    "ome-0.4": ("0.4/|zarr2:", NAMED),
    "ome-0.5": ("0.5/|zarr3:", NAMED),
}
"""The URL that Neuroglancer gets for each source, and the names that it then gives to the dimensions."""


def neuroglancer(name, url):
    """What the address of Neuroglancer says, for it to show the middle of the image: slice 1 of channel 0."""
    source, dimensions = SOURCES[name]
    layer = {"type": "image", "name": "image", "source": f"{url}/{source}", "shader": SHADER}
    position = numpy.array(images.PIXELS.shape[1:]) / 2
    if name.startswith("ome"):
        # There, whole numbers are the middles of the pixels, and the channels are no place.
        position -= 0.5
        layer |= {"localDimensions": {"c'": [1, ""]}, "localPosition": [0]}
    return {
        "layers": [layer],
        "dimensions": {dimension: [1, ""] for dimension in dimensions},
        "position": position.tolist(),
        "displayDimensions": list(reversed(dimensions)),
        "crossSectionScale": 1 / SCALE,
        "layout": "xy",
        "showAxisLines": False,
        "showScaleBar": False,
        "showDefaultAnnotations": False,
    }


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.client("Neuroglancer", "read")
def test_neuroglancer_shows_every_pixel_of_the_image(browse, store, backend, screenshots, name):
    state = json.dumps(neuroglancer(name, store))
    png = screenshots / f"neuroglancer-{backend}-{name}.png"
    shown = browse("neuroglancer", "!" + urllib.parse.quote(state), png)
    panel, screen = shown["finished"], array(shown["screenshot"])
    expected = images.PIXELS[0, 1]
    rows, columns = (
        (panel[start] + panel[length] / 2 + (numpy.arange(pixels) - pixels / 2 + 0.5) * SCALE).astype(int)
        for start, length, pixels in zip("yx", ("height", "width"), expected.shape)
    )
    clients.assert_same(screen[rows][:, columns, :3], numpy.stack([expected] * 3, axis=-1))


@pytest.fixture(scope="session")
def read_in_browser(browse):
    """Reads by a client what is at paths of a store, in a page."""

    def read(client, url, *paths):
        question = json.dumps({"client": client, "url": url.rstrip("/"), "paths": paths})
        return browse("read", urllib.parse.quote(question))["finished"]

    return read


@pytest.mark.parametrize("client", ["zarrita", "zarrita-suffix"])
@pytest.mark.client("zarrita (Chromium)", "read")
def test_zarrita_reads_equal_in_a_page(server, mount, read_in_browser, client):
    names = ["v3_sharded", "v3_sharded_sparse", "v3_zstd_missing_nan", "v2_blosc", "v2_fortran_slashes"]
    found = read_in_browser(client, server.store(mount), *map(path, names))
    for name, values in zip(names, found, strict=True):
        clients.assert_same(array(values), ARRAYS[name].values)


@pytest.mark.client("Viv (Chromium)", "read")
def test_viv_reads_equal_in_a_page(store, read_in_browser):
    for levels in read_in_browser("viv", store, *images.VERSIONS):
        for level, values in zip(levels, images.LEVELS, strict=True):
            clients.assert_same(array(level), values)


@pytest.fixture(scope="session")
def facts(browse, tmp_path_factory):
    """What a script in a page has seen, and what of it went over the wire, by the path of the request."""
    config = tmp_path_factory.mktemp("config") / "zarrd.toml"
    config.write_text(f"""
        [http.cors]
        allow_writes = true
        [mounts.facts]
        url = {json.dumps(str(tmp_path_factory.mktemp("facts")))}
        writable = true
    """)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(processes.zarrd("--config", str(config)))
        tapped = stack.enter_context(wire.tap(running.base))
        running.base = tapped.base
        return browse("facts", running.store("facts"))["finished"] | {"requests": tapped.requests}


OLD, NEW = "0123456789" * 20, "abcdefghij" * 20
"""What the page writes, and writes later."""


def asked(facts, key):
    """The fields of the requests for a key, without the preflights."""
    return [fields for line, fields in facts["requests"] if line.startswith(f"GET /store/facts/{key} ")]


def test_a_page_reads_values_and_their_fields(facts):
    assert facts["created"]["status"] == 201
    for name, body in [("whole", OLD), ("head", "")]:
        found = facts[name]
        assert (found["status"], found["body"]) == (200, body)
        assert found["fields"]["Content-Length"] == str(len(OLD))
        assert found["fields"]["Accept-Ranges"] == "bytes"
        assert found["fields"]["ETag"].startswith('"')
        assert found["fields"]["Last-Modified"]


@pytest.mark.parametrize("name", ["missing", "missing range", "missing suffix"])
def test_a_page_sees_that_a_value_is_missing(facts, name):
    assert facts[name]["status"] == 404


@pytest.mark.parametrize(
    ("name", "status", "body", "content_range"),
    [
        ("range", 206, OLD[3:7], "bytes 3-6/200"),
        ("suffix", 206, OLD[-3:], "bytes 197-199/200"),
        ("several", 200, OLD, None),
    ],
)
def test_a_page_reads_ranges(facts, name, status, body, content_range):
    found = facts[name]
    assert (found["status"], found["body"], found["fields"]["Content-Range"]) == (status, body, content_range)
    assert found["fields"]["ETag"] == facts["whole"]["fields"]["ETag"]


def test_a_page_sees_that_a_range_is_beyond_the_end(facts):
    assert (facts["beyond"]["status"], facts["beyond"]["fields"]["Content-Range"]) == (416, "bytes */200")


def test_a_page_sees_the_outcome_of_its_conditions(facts):
    assert facts["unchanged"]["status"] == 304
    assert facts["unchanged"]["fields"]["ETag"] == facts["whole"]["fields"]["ETag"]
    assert facts["changed"]["status"] == 412


def test_a_page_is_redirected_to_a_listing(facts):
    assert facts["redirected"]["status"] == 200
    assert facts["redirected"]["url"].endswith("/store/facts/folder/")
    assert '<a href="value">' in facts["redirected"]["body"]
    assert facts["redirected"]["body"] == facts["listed in a folder"]["body"]
    assert facts["erased"]["status"] == 204


def test_a_range_is_completed_from_the_cache_of_the_browser(facts):
    assert (facts["part"]["status"], facts["part"]["body"]) == (206, OLD[:11])
    assert (facts["stitched"]["status"], facts["stitched"]["body"]) == (206, OLD[:101])
    assert ("bytes=11-100", facts["part"]["fields"]["ETag"]) in [
        (fields.get("range"), fields.get("if-range")) for fields in asked(facts, "parts")
    ]


def test_a_range_of_a_changed_value_is_never_completed_with_the_old_one(facts):
    assert facts["stitched again"]["body"] == NEW[:151]
    # It had something to complete, and asked whether it is still so.
    assert facts["stitched"]["fields"]["ETag"] in [fields.get("if-none-match") for fields in asked(facts, "parts")[2:]]
    # A script may ask in the way that a browser asks where it need not ask first.
    assert (facts["another"]["status"], facts["another"]["body"]) == (200, OLD)
    assert (facts["the same"]["status"], facts["the same"]["body"]) == (206, OLD[3:7])


def test_the_cache_of_the_browser_is_revalidated(facts):
    assert [facts[name]["body"] for name in ("first", "second", "third")] == [OLD, OLD, NEW]
    first, second, third = asked(facts, "again")
    etag = facts["first"]["fields"]["ETag"]
    assert [request.get("if-none-match") for request in (first, second, third)] == [None, etag, etag]
    assert facts["third"]["fields"]["ETag"] != etag


@pytest.fixture(scope="module")
def documentation(folder, tmp_path_factory):
    """Tries an operation of the documentation of a server with an array within groups; what the page says then."""
    arrays = tmp_path_factory.mktemp("documented")
    zarr.create_array(
        arrays / "group/inner/array", data=numpy.arange(12, dtype="int32").reshape(3, 4), dimension_names=["time", "lat"]
    )
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(processes.zarrd(f"docs={arrays}"))
        ask = stack.enter_context(programs.running("node", folder / "docs.mjs", table.program("chromium")))

        def tried(operation, png=None, **parameters):
            question = {"url": f"{running.base}/docs/", "operation": operation, "parameters": parameters}
            found = ask(question | {"png": png and str(png)})
            assert "error" not in found, found
            return found

        yield tried


@pytest.mark.parametrize(
    "operation,parameters",
    [
        ("data-get_data", {"path": "group/inner/array"}),
        ("nodes-get_node", {"path": "group/inner/array"}),
        ("store-get_key", {"key": "group/inner/array/zarr.json"}),
        ("views-get_rechunked_key", {"chunks": "2,2", "codec": "zstd", "key": "group/inner/array/zarr.json"}),
        ("s3-get_object", {"key": "group/inner/array/zarr.json"}),
    ],
)
def test_the_documentation_can_be_tried_with_arrays_within_groups(documentation, screenshots, operation, parameters):
    found = documentation(operation, screenshots / f"{operation}.png", mount="docs", **parameters)
    assert found["status"] == "200", found
    assert "group/inner/array" in found["asked"]


def test_the_documentation_can_be_tried_with_names_of_dimensions(documentation, screenshots):
    names = {"isel.NAME": json.dumps({"isel.time": "1", "isel.lat": "1:3"}), "format": "json"}
    png = screenshots / "isel.png"
    found = documentation("data-get_data", png, mount="docs", path="group/inner/array", **names)
    assert found["status"] == "200", found
    assert "isel.time=1&isel.lat=1%3A3" in found["asked"]


def test_the_documentation_shows_pictures(documentation, screenshots):
    found = documentation("images-get_image", screenshots / "picture.png", mount="docs", path="group/inner/array")
    assert (found["status"], found["pictures"]) == ("200", [4]), found


def test_the_documentation_lists_each_route_once_and_begins_with_the_store(documentation):
    found = documentation("service-healthz")
    assert (found["status"], found["tags"][0], found["tags"][-1]) == ("200", "store", "vectors")
    assert "HEAD" not in found["methods"]
