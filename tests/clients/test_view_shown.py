"""What pages show where there is no picture, or where the numbers are not those that are stored: packed values, structs and
their fields, single and no elements, plates with missing wells, mounts of one array."""

import re

import numpy
import pytest
import requests
import zarr

import processes
from test_view import HTML, SHOWN, image

PACKED = numpy.array([[-7, 100, 200], [300, 400, 500]], dtype="int16")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    root = zarr.create_group(folder / "m")
    root.create_array("packed", data=PACKED, dimension_names=("y", "x"), attributes={"scale_factor": 0.5, "add_offset": 10, "_FillValue": -7, "units": "K"})
    root.create_array("x", data=numpy.array([1, 2, 3], dtype="int16"), dimension_names=("x",), attributes={"scale_factor": 0.25, "units": "m"})
    root.create_array("bytes", data=numpy.array([[1, -1]], dtype="int8"), attributes={"_Unsigned": "true"})
    root.create_array("scalar", data=numpy.array(42.5))
    root.create_array("word", data=numpy.array(["one", "two"]))
    root.create_array("empty", shape=(3, 0, 4), chunks=(1, 1, 1), dtype="float32", dimension_names=("t", "y", "x"))
    hollow = numpy.where(numpy.arange(10)[:, None] % 3, numpy.arange(400.0).reshape(10, 40), numpy.nan)
    root.create_array("hollow", data=hollow, dimension_names=("v", "u"))
    root.create_array("line", data=numpy.arange(5.0))
    root.create_array("degrees", data=numpy.linspace(244.2, 293, 64).reshape(8, 8))
    spikes = numpy.sin(numpy.arange(20_003.0)).round(3)
    spikes[[7_001, 12_003]] = 500, -300
    root.create_array("spikes", data=spikes, chunks=(20_003,))
    struct = numpy.zeros((6, 7), dtype=[("a", "f4"), ("b", "i2")])
    struct["a"], struct["b"] = numpy.arange(42).reshape(6, 7), 5
    zarr.create_array(folder / "m/struct", data=struct, zarr_format=2)
    wells = [{"path": f"{row}/1", "rowIndex": at, "columnIndex": 0} for at, row in enumerate("AB")]
    plate = {"name": "plate", "rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}], "wells": wells}
    root.create_group("plate", attributes={"ome": {"version": "0.5", "plate": plate}})
    root.create_group("plate/A/1", attributes={"ome": {"version": "0.5", "well": {"images": [{"path": "0"}]}}})
    image(root, "plate/A/1/0")
    image(root, "stack", labels=["nuclei"])
    image(root, "stack/labels/nuclei")
    for path, depth, more in [("deep", 8, {}), ("deep/labels/cells", 4, {"image-label": {}})]:
        axes = [{"name": name, "type": "space"} for name in "zyx"]
        datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [8 / depth, 1, 1]}]}]
        group = root.create_group(path, attributes={"ome": {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}], **more}})
        group.create_array("0", data=numpy.ones((depth, 6, 6), "uint8"), chunks=(1, 6, 6), dimension_names=("z", "y", "x"))
    root["deep/labels"].attrs["ome"] = {"version": "0.5", "labels": ["cells"]}
    zarr.create_array(folder / "one", data=numpy.arange(64.0).reshape(8, 8))
    (folder / "files").mkdir()
    (folder / "files" / "notes.txt").write_text("no Zarr")
    with processes.zarrd(f"m={folder / 'm'}", f"one={folder / 'one'}", f"files={folder / 'files'}") as running:
        yield running


CELLS = """Array.from(document.querySelectorAll("#table tr"), (row) => Array.from(row.children, (cell) => cell.textContent))"""
FILLED = ["until", "document.querySelector('#table td')"]


def test_a_table_has_the_values_that_the_picture_has(visit, stored):
    found = visit(f"{stored.base}/view/m/packed?tab=table", steps=[FILLED, ["evaluate", CELLS]], axe=True)
    assert not found["said"] and found["violations"] == []
    assert found["values"][-1] == [["y ↓ x →", "0.25 m", "0.5 m", "0.75 m"], ["0", "–", "60", "110"], ["1", "160", "210", "260"]]
    assert "in K; decoded from the stored numbers: × 0.5 + 10; – is missing" in found["text"]
    # Stored numbers have no units.
    found = visit(f"{stored.base}/view/m/packed?tab=table&decode=none", steps=[FILLED, ["evaluate", CELLS]])
    assert found["values"][-1][1][1:] == ["-7", "100", "200"] and "Values in" not in found["text"]
    found = visit(f"{stored.base}/view/m/bytes?tab=table", steps=[FILLED, ["evaluate", CELLS]])
    assert found["values"][-1][1][1:] == ["1", "255"]


def test_a_line_has_the_values_that_the_picture_has(visit, stored):
    found = visit(f"{stored.base}/view/m/packed?tab=line&slice=1,:", steps=[["until", "document.querySelector('#plot svg')"]])
    assert "3 values from 160 to 260" in found["text"]


def test_a_line_of_every_sixth_element_shows_the_extremes_of_all(visit, stored):
    found = visit(f"{stored.base}/view/m/spikes?tab=line", steps=[["until", "document.querySelector('#plot svg .band')"]])
    assert not found["said"]
    assert "3334 values from -300 to 500" in found["text"].replace("−", "-")
    assert "every 6th element, and the extremes of those between" in found["text"]


@pytest.mark.parametrize("tab", ["", "?tab=image", "?tab=line", "?tab=table"])
@pytest.mark.parametrize(("path", "cells"), [("scalar", [["", "value"], ["", "42.5"]]), ("word", [["dim_0", "value"], ["0", "one"], ["1", "two"]])])
def test_what_is_no_picture_is_a_table(visit, stored, path, cells, tab):
    found = visit(f"{stored.base}/view/m/{path}{tab}", steps=[FILLED, ["evaluate", CELLS]], axe=True)
    assert not found["said"] and found["violations"] == []
    assert found["values"][-1] == cells


TABS = """Array.from(document.querySelectorAll(".tabs a"), (tab) => tab.textContent)"""


@pytest.mark.parametrize(("path", "tabs"), [
    ("word", ["Table", "Chunks", "Metadata", "Use it"]),
    ("struct", ["Table", "Chunks", "Metadata", "Use it"]),
    ("struct?fields=a", ["Image", "Line", "Table", "Histogram", "Chunks", "Metadata", "Use it"]),
])
def test_only_numbers_have_pictures_lines_and_histograms(visit, stored, path, tabs):
    found = visit(f"{stored.base}/view/m/{path}", steps=[["evaluate", TABS]])
    assert found["values"][-1] == tabs


def test_a_histogram_on_a_narrow_screen_has_a_scale(visit, stored):
    marks = """Array.from(document.querySelectorAll("#histogram svg > text:not([text-anchor=end])"), (mark) => mark.textContent)"""
    steps = [["until", "document.querySelector('#histogram svg')"], ["evaluate", marks]]
    found = visit(f"{stored.base}/view/m/degrees?tab=hist", width=400, steps=steps)
    assert found["values"][-1] == ["260", "280"]


def test_one_element_is_counted_in_the_singular(visit, stored):
    assert "8 B decoded, 1 element\n" in visit(f"{stored.base}/view/m/scalar")["text"]


def test_a_line_is_in_place_of_the_picture_of_one_dimension(visit, stored):
    found = visit(f"{stored.base}/view/m/line?tab=image", steps=[["until", "document.querySelector('#plot svg')"]])
    assert not found["said"] and "5 values from 0 to 4" in found["text"]


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("tab", ["", "tab=image", "tab=line", "tab=table", "tab=hist", "tab=use", "tab=chunks"])
def test_an_empty_array_says_so(visit, stored, tab, scripts):
    found = visit(f"{stored.base}/view/m/empty?{tab}", scripts=scripts, axe=scripts)
    assert found["status"] == 200 and not found["said"] and not found.get("violations")
    if tab not in ["tab=use", "tab=chunks"]:
        assert "This array has no elements: its shape is 3 × 0 × 4, and the length of y is 0." in found["text"]
    found = visit(f"{stored.base}/view/m/packed?slice=1:1,:&{tab}", scripts=scripts)
    assert not found["said"]
    if tab not in ["tab=use", "tab=chunks"]:
        assert "The selection 1:1,: has no elements." in found["text"]


def test_a_struct_is_a_table_and_its_fields_are_pictures(visit, stored):
    found = visit(f"{stored.base}/view/m/struct", steps=[FILLED], axe=True)
    assert not found["said"] and found["violations"] == [] and "Fields: all · a · b" in found["text"]
    found = visit(f"{stored.base}/view/m/struct?fields=a", steps=[SHOWN, ["key", "c"], ["pause", 700]], axe=True)
    assert not found["said"] and found["violations"] == [] and "float32" in found["text"]
    assert found["url"] == "/view/m/struct?fields=a&colormap=magma"
    assert requests.get(f"{stored.base}/v1/image/m/struct?fields=a&colormap=magma", timeout=processes.SECONDS).status_code == 200
    for tab, shown in [("table", "#table td"), ("line", "#plot svg"), ("hist", "#histogram svg")]:
        found = visit(f"{stored.base}/view/m/struct?fields=b&tab={tab}", steps=[["until", f"document.querySelector('{shown}')"]])
        assert not found["said"], found["said"]
        # The server counts.
        stats = [one for one in found["requests"] if one.startswith("/v1/stats/m/struct") and "fields=b" in one]
        assert bool(stats) == (tab == "hist") and ("From all elements of the slice." in found["text"] or tab != "hist"), found["requests"]


# How far the edges of the hatching are from those of the picture, which is drawn as large as it fits into its element.
STRIPES = """(() => {
  const [hatch, picture, stage] = ["svg.hatch > rect", "#picture", "#stage"].map((one) => document.querySelector(one).getBoundingClientRect());
  const [width, height] = [document.querySelector("#picture").naturalWidth, document.querySelector("#picture").naturalHeight];
  const scale = Math.min(picture.width / width, picture.height / height);
  return [hatch.width - width * scale, hatch.height - height * scale, hatch.x - (picture.x + (picture.width - width * scale) / 2), hatch.y - (picture.y + (picture.height - height * scale) / 2)].map(Math.abs);
})()"""


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("path", ["packed", "hollow", "hollow?slice=2:9,3:40:3", "hollow?box=5,0,30,4"])
def test_what_is_missing_is_hatched_without_scripts_and_only_in_the_plane(visit, stored, path, width):
    found = visit(f"{stored.base}/view/m/{path}", scripts=False, width=width, axe=False, steps=[["evaluate", STRIPES]])
    assert not found["said"]
    assert max(found["values"][-1]) < 2, found["values"]
    page = requests.get(f"{stored.base}/view/m/deep/labels/cells", headers=HTML, timeout=processes.SECONDS).text
    assert 'class="hatch' not in page


def test_wells_have_one_range_and_missing_ones_no_link(visit, stored):
    found = visit(f"{stored.base}/view/m/plate", axe=True)
    assert not found["said"] and found["violations"] == []
    shown = [one for one in found["requests"] if one.startswith("/v1/image/")]
    assert len(shown) == 1 and re.fullmatch(r"/v1/image/m/plate/A/1\?size=96&channels=0:[0-9a-f]{6}:0:80,.*", shown[0]), shown
    page = requests.get(f"{stored.base}/view/m/plate", headers=HTML, timeout=processes.SECONDS).text
    assert 'href="/view/m/plate/A/1"' in page and 'href="/view/m/plate/B/1"' not in page
    plain = visit(f"{stored.base}/view/m/plate", scripts=False)
    # One picture, in one range, above links to the wells.
    assert [one for one in plain["requests"] if one.startswith("/v1/image/")] == ["/v1/image/m/plate?size=960"]
    assert "A1" in plain["text"] and "B1" not in plain["text"]
    assert "below this group" not in plain["text"]


def test_labels_without_scripts_are_those_of_the_same_depth(visit, stored):
    found = visit(f"{stored.base}/view/m/deep?slice=6,:,:&labels=cells", scripts=False)
    shown = [one for one in found["requests"] if one.startswith("/v1/image/m/deep/labels/")]
    assert len(shown) == 1 and "isel.z=3" in shown[0], found["requests"]


def test_the_card_of_a_mount_shows_what_is_in_it(stored):
    page = requests.get(f"{stored.base}/", headers=HTML, timeout=processes.SECONDS).text
    cards = {re.search(r"<bdi>(.*?)</bdi>", card)[1]: card for card in page.split('<li class="card">')[1:]}
    assert "/v1/image/one/" in cards["one"]
    assert "No arrays or groups" in cards["files"]


def test_a_listing_is_dark_where_the_browser_is(stored):
    found = requests.get(f"{stored.base}/store/m/", headers=HTML, timeout=processes.SECONDS).text
    assert '<meta name="color-scheme" content="light dark">' in found
