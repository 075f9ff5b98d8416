"""Maps whose rows go to the north, and planes that a selection cuts or turns: a page shows what the picture of the same URL
shows, when it is opened, after it was zoomed, and when that URL is opened again."""

import numpy
import pytest
import zarr

import processes
from test_view_pixels import SHOWN, assert_same

ROWS, COLUMNS = 72, 108
"""Enough, so that no element is drawn with its number over it."""
LARGE = 5000
"""Rows and columns of a plane that costs more than a page loads unasked."""

DIMENSIONS = {
    "up": ("lat", numpy.linspace(-40, 40, ROWS), {"units": "degrees_north"}),
    "down": ("lat", numpy.linspace(40, -40, ROWS), {"units": "degrees_north"}),
    "northing": ("y", numpy.arange(ROWS) * 1000.0, {"standard_name": "projection_y_coordinate", "units": "m"}),
    # No attribute says that these are latitudes.
    "plain": ("lat", numpy.linspace(-40, 40, ROWS), {}),
    # They are packed, and descend as they are stored.
    "packed": ("latitude", numpy.arange(ROWS, 0, -1, dtype="int16"), {"units": "degrees_north", "scale_factor": -0.5, "add_offset": 3.0}),
}
"""The dimension of rows, its coordinates, and what these say of themselves."""


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """A server of maps of each orientation."""
    folder = tmp_path_factory.mktemp("maps")
    values = numpy.arange(2 * ROWS * COLUMNS, dtype="float32").reshape(2, ROWS, COLUMNS)
    values[:, 3, 5] = numpy.nan
    for name, (rows, latitudes, attributes) in DIMENSIONS.items():
        group = zarr.create_group(folder / name)
        group.create_array("map", data=values, chunks=(1, 24, 27), dimension_names=("time", rows, "lon"))
        group.create_array(rows, data=latitudes, dimension_names=(rows,), attributes=attributes)
        group.create_array("lon", data=numpy.arange(COLUMNS) * 2.5, dimension_names=("lon",), attributes={"units": "degrees_east"})
    for name, latitudes in [("large-up", numpy.linspace(-80, 80, LARGE)), ("large-down", numpy.linspace(80, -80, LARGE))]:
        group = zarr.create_group(folder / name)
        large = group.create_array("map", shape=(LARGE, LARGE), chunks=(1000, 1000), dtype="float32", dimension_names=("lat", "lon"))
        large[2000:3000, 2000:3000] = numpy.arange(1_000_000).reshape(1000, 1000)
        group.create_array("lat", data=latitudes, dimension_names=("lat",), attributes={"units": "degrees_north"})
    with processes.zarrd(f"m={folder}") as running:
        yield running


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize(
    "query",
    [
        "", "box=12,6,54,27", "slice=1,9:45,30:90", "axes=lon,{rows}", "axes=lon,{rows}&box=12,6,27,54", "origin=upper", "origin=lower&box=12,6,54,27",
        "slice=1,::-1,:", "slice=0,60:12:-3,::-1", "slice=0,1::2,3:100:2", "slice=0,::-1,:&axes=lon,{rows}",
    ],
)
def test_a_map_is_its_picture(visit, maps, name, query):
    assert_same(visit, maps, f"m/{name}/map?{query.format(rows=DIMENSIONS[name][0])}")


CENTRE = """(() => {
    const canvas = document.querySelector("#stage canvas"), rect = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: rect.left + rect.width / 2 + 1, clientY: rect.top + rect.height / 2 + 1, bubbles: true }));
    return document.querySelector("#readout").textContent;
})()"""
"""What the page says of the element in the middle of the canvas."""

ZOOM = "document.querySelector('#zoom-in').click()"
PAN = """(() => {
    const canvas = document.querySelector("#stage canvas"), rect = canvas.getBoundingClientRect();
    const at = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, bubbles: true }));
    canvas.setPointerCapture = () => {};
    const [x, y] = [rect.left + rect.width / 2, rect.top + rect.height / 2];
    at("pointerdown", x, y), at("pointermove", x + 40, y + 70), at("pointerup", x + 40, y + 70);
})()"""


@pytest.mark.parametrize("path", ["up/map", "down/map", "up/map?box=12,6,54,27", "down/map?slice=1,9:45,30:90", "up/map?slice=1,::-1,::-1", "large-up/map", "large-down/map"])
def test_a_map_that_was_zoomed_is_the_same_when_its_url_is_opened(visit, maps, path):
    zooms = 4 if path.startswith("large") else 1
    steps = [SHOWN, *[["evaluate", ZOOM]] * zooms, ["pause", 300], ["evaluate", PAN], ["pause", 1000], ["evaluate", CENTRE]]
    moved = visit(f"{maps.base}/view/m/{path}", steps=steps)
    assert not moved["said"]
    assert moved["url"] != f"/view/m/{path}"
    again = visit(f"{maps.base}{moved['url']}", steps=[SHOWN, ["pause", 1000], ["evaluate", CENTRE]])
    assert again["url"] == moved["url"]
    # A box is of whole elements, so that its middle is up to half of one beside that of the canvas.
    def place(found):
        return [int(line.split()[1]) for line in found["values"][-1].splitlines()[:2]]

    assert numpy.abs(numpy.subtract(place(moved), place(again))).max() <= 1, (moved["values"][-1], again["values"][-1])
    assert_same(visit, maps, moved["url"].removeprefix("/view/"))


def test_an_element_is_pinned_at_its_stored_place(visit, maps):
    steps = [SHOWN, ["until", "document.querySelectorAll('#profiles svg').length === 3"], ["evaluate", "document.querySelector('#readout').textContent"]]
    for query in ["", "slice=0,::-1,:&", "slice=0,1::2,::-1&"]:
        found = visit(f"{maps.base}/view/m/up/map?{query}at=7,10", steps=steps)
        assert found["values"][-1].startswith("lat 7 (") and "lon 10 (25°E)" in found["values"][-1], found["values"][-1]
        assert f"= {7 * COLUMNS + 10}" in found["values"][-1]
        assert "at=7,10" in found["url"]
