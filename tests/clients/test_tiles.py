"""Leaflet and OpenSeadragon draw the tiles of an image as they are described: what is on the screen is the picture."""

import io
import json
import urllib.parse

import numpy
import PIL.Image
import pytest
import requests
import zarr

import images
import processes
import programs

PLANE = (numpy.add.outer(numpy.arange(450) * 7, numpy.arange(610) * 13) % 4096).astype("uint16")
"""Neither side is a whole number of tiles."""


@pytest.fixture(scope="module")
def tiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiled")
    zarr.create_array(folder / "m/plane", data=PLANE, chunks=(128, 128), dimension_names=("y", "x"))
    images.write(folder / "m/ome", "0.5")
    with processes.zarrd(f"m={folder / 'm'}", "--demo") as running:
        yield running


@pytest.mark.parametrize("library", ["leaflet", "openSeadragon"])
@pytest.mark.parametrize(("path", "zoom"), [("m/plane", 0), ("m/plane", 1), ("m/ome", 0), ("demo/image", 0), ("demo/image", 1), ("demo/sharded", 0)])
def test_what_is_drawn_is_the_picture(tiled, browse, tmp_path, library, path, zoom):
    question = urllib.parse.quote(json.dumps({"library": library, "base": tiled.base, "path": path, "zoom": zoom}))
    shown = browse("tiles", question, tmp_path / "tiles.png")
    place = shown["finished"]
    found = programs.array(shown["screenshot"])[place["y"] :, place["x"] :][: place["height"], : place["width"], :3]
    size = max(place["width"], place["height"]) if zoom else "max"
    description = requests.get(f"{tiled.base}/v1/tilejson/{path}", timeout=processes.SECONDS).json()
    query = {"size": size} | ({"range": ",".join(map(str, description["range"]))} if description["range"] else {})
    answer = requests.get(f"{tiled.base}/v1/image/{path}", params=query, timeout=processes.SECONDS)
    expected = numpy.asarray(PIL.Image.open(io.BytesIO(answer.content)).convert("RGB"))
    assert place["maxzoom"] >= zoom and len(numpy.unique(expected)) > 20
    if library == "leaflet":
        numpy.testing.assert_array_equal(found, expected)
    else:
        # OpenSeadragon draws a tile without overlap one pixel wider and higher than it is, so that there are no seams: a pixel
        # of the screen is that of the picture, or its neighbour to the left or above.
        padded = numpy.pad(expected, ((1, 0), (1, 0), (0, 0)), mode="edge")
        height, width, _ = expected.shape
        near = [padded[dy : dy + height, dx : dx + width] for dy in (0, 1) for dx in (0, 1)]
        assert numpy.any([(found == one).all(-1) for one in near], axis=0).all()
