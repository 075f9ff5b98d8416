"""What is typed into fields and what a URL says mean on pages what they mean to `/v1/image` and `sel.NAME`, and captions say
which elements are plotted."""

import numpy
import pytest
import requests
import zarr

import processes
from test_images import pictures  # noqa: F401
from test_view import SHOWN, image
from test_view_fields import COMPLAINT
from test_view_pixels import assert_same, picture

LATITUDES = numpy.arange(90, -91, -3.0)
TIMES = numpy.datetime64("2020-01-01", "ns") + numpy.arange(40) * numpy.timedelta64(6, "h")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    root = zarr.create_group(folder)
    values = numpy.random.default_rng(1).normal(280, 9, (40, 61, 5)).astype("float32") + numpy.arange(40, dtype="float32")[:, None, None]
    values[3, 7, 2] = numpy.nan
    hours = numpy.arange(40) * 6
    for name, times, attributes in [
        ("clim", hours, {"units": "hours since 2020-01-01", "calendar": "proleptic_gregorian"}),
        ("even", numpy.arange(40) * 1.0, {"units": "days since 2020-02-20", "calendar": "360_day"}),
        ("stamps", TIMES, {}),
    ]:
        group = root.create_group(name)
        group.create_array("t2m", data=values, chunks=(10, 31, 5), dimension_names=("time", "lat", "lon"))
        group.create_array("time", data=times, dimension_names=("time",), attributes=attributes)
        group.create_array("lat", data=LATITUDES, dimension_names=("lat",), attributes={"units": "degrees_north"})
        group.create_array("lon", data=numpy.arange(5) * 4.0, dimension_names=("lon",), attributes={"units": "degrees_east"})
    root.create_array("bare", data=values, dimension_names=("time", "lat", "lon"))
    image(root, "cells")
    axes = [{"name": "c", "type": "channel"}, {"name": "z", "type": "space"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1, 1]}]}]
    colors = {"DAPI": "0000FF", "GFP": "00FF00", "off": "FF0000"}
    channels = [{"label": name, "color": color, "active": name != "off", "window": {"start": 0, "end": 900, "min": 0, "max": 9000}} for name, color in colors.items()]
    ome = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": datasets}], "omero": {"channels": channels}}
    group = root.create_group("deep", attributes={"ome": ome})
    stack = numpy.random.default_rng(2).integers(0, 500, (3, 5, 40, 30), "uint16") * numpy.array([1, 3, 5], "uint16")[:, None, None, None]
    group.create_array("0", data=stack, chunks=(1, 1, 40, 30), dimension_names=("c", "z", "y", "x"))
    root.create_array("photo", data=numpy.random.default_rng(3).integers(0, 256, (30, 20, 3), "uint8"))
    with processes.zarrd(f"m={folder}") as running:
        yield running


def typed(visit, stored, path, text):
    """What a page does with a text in the field of its first dimension: the complaint, and the index in the URL."""
    steps = [SHOWN, ["pause", 300], ["fill", ".index", text], ["pause", 500], ["evaluate", "document.querySelector('.index').value"], ["evaluate", COMPLAINT]]
    found = visit(f"{stored.base}/view/m/{path}", steps=steps)
    assert not found["said"], found["said"]
    # The index that a coordinate stands for is in the field.
    assert found["values"][-1][0] or found["values"][-2].isdigit()
    return found["values"][-1][0], found["url"]


LAT_FIRST = "clim/t2m?slice=0,9,:&axes=time,lon"


@pytest.mark.parametrize(("text", "index"), [("-45", 45), ("-44.8", 45), ("45.0", 15), ("45", 45), ("89.9", 0), ("-91.4", 60), ("45°S", 45), ("latest", 0)])
def test_a_whole_number_is_an_index_and_a_negative_one_a_coordinate(visit, stored, text, index):
    complaint, url = typed(visit, stored, LAT_FIRST, text)
    assert complaint == "" and f"slice=:,{index},:" in url
    if text != "latest" and "°" not in text and text != "45":
        # The server selects the same by the label.
        answer = requests.head(f"{stored.base}/v1/data/m/clim/t2m?sel.lat=nearest::{text}", timeout=processes.SECONDS)
        assert answer.headers["Array-Selection"] == f"lat={index}"


@pytest.mark.parametrize(("path", "text", "why"), [
    (LAT_FIRST, "-92", "no coordinate is near; they go from 90°N to 90°S"), (LAT_FIRST, "500.0", "no coordinate is near"),
    (LAT_FIRST, "61", "indexes go from 0 to 60"), ("clim/t2m", "-1", "no index or coordinate such as 2020-01-01 00:00"),
    ("bare", "-1", "no index; indexes go from 0 to 39"), ("clim/t2m", "2020-02-30", "no index or coordinate"),
    ("clim/t2m", "2021-01-01", "they go from 2020-01-01 00:00 to 2020-01-10 18:00"), ("bare", "latest", "this is no index"),
])
def test_a_text_that_no_element_is_near_is_refused(visit, stored, path, text, why):
    complaint, url = typed(visit, stored, path, text)
    assert complaint.startswith("Not used: ") and why in complaint
    assert "slice=:,9,:" in url if "axes" in path else "slice" not in url


@pytest.mark.parametrize("path", ["clim/t2m", "stamps/t2m"])
@pytest.mark.parametrize(("text", "index"), [
    ("2020-01-05T06:00", 17), ("2020-01-05T06:00:00", 17), ("2020-01-05T06", 17), ("2020-01-05 06:00", 17), ("2020-01-05T06:00:00Z", 17),
    ("2020-01-05", 16), ("2020-01-05T07:20", 17), ("2020-01-10T20:59", 39), ("latest", 39),
])
def test_a_time_is_found_as_the_server_writes_it_and_between_two_the_nearest(visit, stored, path, text, index):
    complaint, url = typed(visit, stored, path, text)
    assert complaint == "" and f"slice={index},:,:" in url
    if "T" in text:
        answer = requests.head(f"{stored.base}/v1/data/m/{path}", params={"sel.time": f"nearest::{text}"}, timeout=processes.SECONDS)
        assert answer.headers["Array-Selection"] == f"time={index}"


@pytest.mark.parametrize(("text", "index"), [("2020-02-30", 10), ("2020-02-30T09:00", 10), ("2020-03", 11), ("2020-03-29T11:00", 39)])
def test_a_time_is_one_of_its_calendar(visit, stored, text, index):
    complaint, url = typed(visit, stored, "even/t2m", text)
    assert complaint == "" and f"slice={index},:,:" in url


def test_a_field_says_that_a_whole_number_is_an_index(visit, stored):
    title = ["evaluate", "document.querySelector('.index').title"]
    for path, says in [(LAT_FIRST, "45.0"), ("clim/t2m", "2020-01-01 00:00"), ("bare", "")]:
        found = visit(f"{stored.base}/view/m/{path}", steps=[SHOWN, ["pause", 300], title])
        assert found["values"][-1].startswith("A whole number") and says in found["values"][-1]


LOCK = "document.querySelector('#lock').checked"
RANGE = "document.querySelector('#range')?.value ?? ''"


def test_the_range_of_each_slice_is_in_the_url(visit, stored):
    steps = [SHOWN, ["click", "#lock"], ["pause", 700], ["evaluate", LOCK], ["evaluate", RANGE]]
    found = visit(f"{stored.base}/view/m/clim/t2m?slice=7,:,:", steps=steps)
    assert found["url"].endswith("range=slice") and found["values"][-2:] == [False, "slice"] and not found["said"]
    again = visit(f"{stored.base}{found['url']}", steps=[SHOWN, ["pause", 700], ["evaluate", LOCK], ["evaluate", RANGE]])
    assert again["url"] == found["url"] and again["values"][-2:] == [False, "slice"]
    assert_same(visit, stored, found["url"].removeprefix("/view/"))
    back = visit(f"{stored.base}{found['url']}", steps=[SHOWN, ["click", "#lock"], ["pause", 700], ["evaluate", LOCK]])
    assert "range" not in back["url"] and back["values"][-1] is True
    # Each slice has its own.
    assert_same(visit, stored, "m/clim/t2m?slice=39,:,:&range=slice")


@pytest.mark.parametrize("path", ["m/deep", "m/cells"])
def test_the_range_of_each_slice_of_an_image_is_in_the_url(visit, stored, path):
    steps = [SHOWN, ["click", "#lock"], ["pause", 700], ["evaluate", LOCK]]
    found = visit(f"{stored.base}/view/{path}", steps=steps)
    assert "range=slice" in found["url"] and found["values"][-1] is False and not found["said"]
    again = visit(f"{stored.base}{found['url']}", steps=[SHOWN, ["pause", 700], ["evaluate", LOCK]])
    assert again["url"] == found["url"] and again["values"][-1] is False
    assert_same(visit, stored, found["url"].removeprefix("/view/"))
    back = visit(f"{stored.base}{found['url']}", steps=[SHOWN, ["click", "#lock"], ["pause", 700], ["evaluate", LOCK]])
    assert "range" not in back["url"] and back["values"][-1] is True
    assert_same(visit, stored, back["url"].removeprefix("/view/"))


@pytest.mark.parametrize("path", [
    "packed?range=slice", "packed?range=type", "v3/u2?range=type", "v3/i2?range=slice&colormap=none", "v3/f4?range=type", "v3/bool?range=slice",
    "packed?range=10%,60%", "stack?slice=1,1,:,:&colormap=categories", "v3/f4?colormap=categories", "labels?colormap=categories", "labels?colormap=none",
    "v3/f4?scale=gamma:0.5", "stack?slice=1,1,:,:&scale=gamma:2.5&range=10,3000", "stack?slice=1,1,:,:&range=slice&box=2,3,10,12", "stack?slice=1,1,4:20,3:18&range=slice",
    "stack?slice=1,1,:,:&range=5%,70%&box=2,3,10,12", "stack?slice=1,1,:,:&range=slice&scale=log", "v3/f4?range=7,7",
    "ome?isel.z=1&range=slice", "ome?isel.z=1&range=5%,95%", "ome?isel.z=1&range=20,90", "ome?isel.z=1&scale=sqrt", "ome?isel.z=1&scale=gamma:0.5&range=slice",
    "ome?isel.z=1&range=type&channels=0:ff0000:10:80,1:00ff00",
])
def test_the_words_of_pictures_are_drawn_on_the_canvas(visit, pictures, path):  # noqa: F811
    if "box=" in path or "3:18" in path:
        # The canvas shows more than the picture where their sides differ, and has numbers over the middles of large elements.
        own = picture(pictures, f"m/{path}")
        step = ["evaluate", f"""(() => {{
            const canvas = document.querySelector("#stage canvas"), [width, height] = [{own.shape[1]}, {own.shape[0]}];
            const scale = Math.min(canvas.width / width, canvas.height / height);
            const left = (canvas.width - width * scale) / 2, top = (canvas.height - height * scale) / 2;
            const {{ data }} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const found = [];
            for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {{
                const at = 4 * (Math.floor(top + (y + 0.15) * scale) * canvas.width + Math.floor(left + (x + 0.15) * scale));
                found.push(data[at], data[at + 1], data[at + 2], data[at + 3]);
            }}
            return found;
        }})()"""]
        found = visit(f"{pictures.base}/view/m/{path}", steps=[SHOWN, ["pause", 300], step])
        assert not found["said"]
        numpy.testing.assert_array_equal(numpy.array(found["values"][-1], "uint8").reshape(own.shape), own)
        return
    assert_same(visit, pictures, f"m/{path}")


@pytest.mark.parametrize(("path", "word", "field"), [
    ("clim/t2m", "colormap=categories", "#colormap"), ("clim/t2m", "colormap=none", "#colormap"), ("clim/t2m", "scale=gamma:0.5", "#scale"), ("clim/t2m", "range=type", "#range"),
])
def test_the_form_shows_the_words_of_the_url(visit, stored, path, word, field):
    found = visit(f"{stored.base}/view/m/{path}?{word}", steps=[SHOWN, ["pause", 300], ["evaluate", f"document.querySelector('{field}').value"]], axe=True)
    assert found["values"][-1] == word.split("=")[1] and not found["said"] and not found["violations"]
    assert word in found["url"] and "Not used" not in found["text"]


WARNED = "Array.from(document.querySelectorAll('main > p.warn[role=alert]'), (one) => one.textContent).join(' ')"


@pytest.mark.parametrize(("path", "words"), [
    ("clim/t2m?colormap=jet", ["colormap=jet", "viridis", "_r", "categories", "none"]), ("clim/t2m?scale=cubic", ["scale=cubic", "gamma:"]),
    ("clim/t2m?scale=gamma:0", ["scale=gamma:0"]), ("clim/t2m?below=transparent&method=max", ["not drawn here: below, method"]),
    ("deep?colormap=magma", ["not drawn here: colormap"]), ("deep?range=abc", ["range=abc", "slice", "type"]), ("photo?range=10,20", ["not drawn here: range"]),
    ("clim/t2m?range=abc", ["`range=abc` is not understood", "`slice`", "`type`"]), ("clim/t2m?channels=0:ff0000", ["not drawn here: channels"]),
])
def test_a_word_that_is_not_drawn_is_named(visit, stored, path, words):
    found = visit(f"{stored.base}/view/m/{path}", steps=[SHOWN, ["pause", 300], ["evaluate", WARNED]], axe=True)
    for word in words:
        assert word in found["values"][-1], found["values"][-1]
    # Of images, and of channels where there are none, the picture that is there before scripts run is one that the server refuses.
    is_refused = path.startswith("deep") or "channels=" in path
    assert all(is_refused and "/v1/image/" in one for one in found["said"]) and not found["violations"]


@pytest.mark.parametrize("word", ["auto", "slice", "type", "2%,98%", "0,40"])
def test_the_warning_of_a_range_lists_what_the_page_takes(visit, stored, word):
    found = visit(f"{stored.base}/view/m/clim/t2m", steps=[SHOWN, ["fill", "#range", "abc"], ["pause", 300], ["evaluate", COMPLAINT]])
    assert word in found["values"][-1][0]
    found = visit(f"{stored.base}/view/m/clim/t2m", steps=[SHOWN, ["fill", "#range", word], ["pause", 500], ["evaluate", COMPLAINT]])
    assert found["values"][-1][0] == "" and f"range={word.replace('%', '%25')}" in found["url"]


PLOTS = "Array.from(document.querySelectorAll('#profiles section'), (one) => [one.querySelector('h2').textContent, one.querySelector('svg').getAttribute('aria-label')])"


def profiled(visit, stored, path, count):
    found = visit(f"{stored.base}/view/m/{path}", steps=[SHOWN, ["until", f"document.querySelectorAll('#profiles section svg').length === {count}"], ["evaluate", PLOTS]], axe=True)
    assert not found["said"] and not found["violations"]
    return [label.split(":")[0] if path.startswith("bare") else label for _, label in found["values"][-1]]


def test_the_caption_of_a_profile_says_through_which_element_it_goes(visit, stored):
    plots = profiled(visit, stored, "clim/t2m?slice=5,:,:&at=30,2", 3)
    assert [plot.split(": ")[0] for plot in plots] == [
        "along time at lat 30 (0°N), lon 2 (8°E)", "along lat at time 5 (2020-01-02 06:00), lon 2 (8°E)", "along lon at time 5 (2020-01-02 06:00), lat 30 (0°N)",
    ]
    assert profiled(visit, stored, "bare?slice=5,:,:&at=30,2", 3) == ["along time at lat 30, lon 2", "along lat at time 5, lon 2", "along lon at time 5, lat 30"]


STROKES = "Array.from(document.querySelectorAll('#profiles section:first-child path.curve'), (one) => getComputedStyle(one).stroke)"


def test_a_profile_has_a_curve_for_each_channel_that_is_shown(visit, stored):
    data = requests.get(f"{stored.base}/v1/data/m/deep/0?slice=:,:,7,9&format=json", timeout=processes.SECONDS).json()
    extent = [f"5 values from {min(values)} to {max(values)}" for values in data]
    [plot, *_] = profiled(visit, stored, "deep?at=7,9", 3)
    assert plot == f"along z at y 7, x 9: DAPI {extent[0]}; GFP {extent[1]}"
    plotted = ["until", "document.querySelectorAll('#profiles section svg').length === 3"]
    found = visit(f"{stored.base}/view/m/deep?at=7,9", steps=[SHOWN, plotted, ["evaluate", STROKES]])
    assert {"rgb(0, 0, 255)", "rgb(0, 255, 0)"} < set(found["values"][-1]) and "DAPI" in found["text"] and "rgb(255, 0, 0)" not in found["values"][-1]
    # One that is switched on has one too.
    show = "document.querySelector('[aria-label=\"show off\"]').click()"
    found = visit(f"{stored.base}/view/m/deep?at=7,9", steps=[SHOWN, plotted, ["evaluate", show], ["pause", 900], ["evaluate", PLOTS]])
    assert found["values"][-1][0][1].endswith(f"; off {extent[2]}")


def test_a_profile_of_a_photograph_has_a_curve_for_each_colour(visit, stored):
    [plot, *_] = profiled(visit, stored, "photo?at=7,9", 2)
    assert "red 30 values" in plot and "green 30 values" in plot and "blue 30 values" in plot


def test_after_a_click_on_the_picture_arrows_pan(visit, stored):
    steps = [SHOWN, ["key", "ArrowRight"], ["pause", 500], ["click", "#stage canvas"], ["key", "+"], ["key", "ArrowRight"], ["pause", 700]]
    found = visit(f"{stored.base}/view/m/clim/t2m", steps=steps)
    assert "slice=1," in found["url"] and "box=" in found["url"]
    # Beside it, they step again.
    found = visit(f"{stored.base}/view/m/clim/t2m", steps=[*steps, ["click", "#cost"], ["key", "ArrowRight"], ["pause", 700]])
    assert "slice=2," in found["url"] and "box=" in found["url"]
