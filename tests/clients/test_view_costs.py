"""Pages of arrays that are too large, or whose chunks are too small: they show a part, say which, and offer nothing that the
server refuses. Lines and tables go anywhere in them."""

import re
import urllib.parse

import numpy
import pytest
import requests
import zarr

import processes

HTML = {"Accept": "text/html"}
SHOWN = ["until", "document.querySelector('canvas[data-ready]')"]
READY = ["until", "document.querySelector('#cost').textContent.includes('decoded')"]
LINE = ["until", "document.querySelector('#plot path.curve')"]
LINE_COST = ["evaluate", "document.querySelector('#plot p.cost').textContent"]
SPIKES = numpy.random.default_rng(7).normal(size=200_000)
SPIKES[[77, 100_050]] = -300, 500
VALUES = numpy.arange(6 * 3 * 20 * 30, dtype="float32").reshape(6, 3, 20, 30)


def line_of(text):
    """Until the line that is shown has `text` in what it says of itself: while it is drawn again there is none."""
    return ["until", f"document.querySelector('#plot p.cost')?.textContent.includes('{text}')"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    root = zarr.create_group(folder)
    root.create_array("tiny", shape=(4000, 4000), chunks=(16, 16), dtype="int16", dimension_names=("y", "x"), fill_value=7)
    root.create_array("huge", shape=(200, 60000, 60000), chunks=(64, 64, 64), dtype="float32", dimension_names=("z", "y", "x"))
    # The centre is where four chunks meet, of which one is affordable.
    root.create_array("corner", shape=(8192, 8192), chunks=(4096, 4096), dtype="float32", dimension_names=("y", "x"))
    root.create_array("long", shape=(10**10,), chunks=(1000,), dtype="float64", dimension_names=("n",))
    root.create_array("spikes", data=SPIKES, chunks=(20_000,), dimension_names=("sample",), attributes={"units": "mV"})
    array = root.create_array("deep", data=VALUES, chunks=(1, 1, 10, 10), dimension_names=("time", "level", "lat", "lon"))
    array.attrs["units"] = "K"
    struct = numpy.zeros(30, dtype=[("id", "i4"), ("name", "U5"), ("x", "f8")])
    struct["id"], struct["name"], struct["x"] = numpy.arange(30), "ev", numpy.arange(30) / 4
    zarr.create_array(folder / "events", data=struct, chunks=(10,), zarr_format=2)
    return folder


@pytest.fixture(scope="module")
def server(data):
    with processes.zarrd(f"m={data}") as running:
        yield running


def cost(text):
    """The chunks that the line about costs names."""
    return int(re.sub(r"\s", "", re.search(r"([\d\s]+) chunks?,", text)[1]))


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["tiny", "huge", "corner"])
def test_of_a_plane_that_is_too_large_the_centre_is_shown_at_once(visit, server, name, width):
    text = ["evaluate", "document.querySelector('#cost').textContent"]
    found = visit(f"{server.base}/view/m/{name}", steps=[SHOWN, READY, text], width=width)
    assert not found["said"] and "Load" not in found["values"][-1] and found["values"][-1].startswith("The centre of the plane.")
    assert cost(found["values"][-1]) <= 1024
    [read] = [request for request in found["requests"] if request.startswith("/v1/data/") and "format=bytes" in request]
    answer = requests.get(f"{server.base}{read}", timeout=processes.SECONDS)
    sides = [int(side) for side in answer.headers["Array-Shape"].strip("[]").split(",")]
    assert answer.status_code == 200 and min(sides) >= 400, sides


def test_zooming_out_offers_no_more_than_the_server_reads(visit, server):
    cost = ["evaluate", "document.querySelector('#cost').textContent"]
    steps = [SHOWN, READY, ["click", "#fit"], ["until", "document.querySelector('#cost').textContent.includes('zoom in')"], cost]
    found = visit(f"{server.base}/view/m/tiny", steps=[*steps, *[["click", "#zoom-in"]] * 4, ["until", "document.querySelector('#cost').textContent.includes(' ms')"]])
    assert "more than this server reads for one request" in found["values"][4] and not found["said"]


def test_a_page_offers_nothing_that_the_limits_of_the_server_refuse(visit, data, tmp_path):
    config = tmp_path / "zarrd.toml"
    config.write_text(f'[mounts.m]\nurl = "{data}"\n[read]\nmax_chunks = 9\n')
    with processes.zarrd("--config", str(config)) as running:
        for path in ["tiny", "tiny?tab=line", "deep", "deep?axes=time,lat", "deep?slice=0,0,:,:", "long", "huge?tab=hist", "huge?tab=table"]:
            found = visit(f"{running.base}/view/m/{path}", steps=[["pause", 300]])
            assert not found["said"] and "this server reads" not in found["text"], (path, found)
        found = visit(f"{running.base}/view/m/tiny?slice=:,:")
        assert "more than this server reads for one request" in found["text"] and not found["said"]
        page = requests.get(f"{running.base}/view/m/tiny?slice=:,:", headers=HTML, timeout=processes.SECONDS).text
        assert "Load" not in page and "Show a part" in page


def test_the_warnings_of_the_summary_are_on_the_page_with_what_helps(server):
    for name, words in [("tiny", "62500 chunks of 512 bytes"), ("huge", "There is one level"), ("deep", None)]:
        page = requests.get(f"{server.base}/view/m/{name}", headers=HTML, timeout=processes.SECONDS).text
        warnings = requests.get(f"{server.base}/v1/nodes/m/{name}", timeout=processes.SECONDS).json()["summary"]["warnings"]
        notes = re.findall(r'<p class="note">(.*?)</p>', page)
        assert len(notes) == len(warnings)
        for note, warning in zip(notes, warnings, strict=True):
            assert words in note and f'href="{warning["way_out"]}"' in note
            assert requests.get(f"{server.base}{warning['way_out']}", timeout=processes.SECONDS).status_code == 200


def test_a_line_is_as_long_as_the_slice_and_is_zoomed(visit, server):
    url = f"{server.base}/view/m/spikes?slice=100000:100100"
    found = visit(url, steps=[LINE, LINE_COST, ["click", "button[title='Zoom in']"], ["until", "location.search.includes('100025:100075')"], line_of(' 50 values'), LINE_COST])
    assert found["values"][1].startswith("along sample: 100 values") and "to 500 mV" in found["values"][1]
    assert found["values"][-1].startswith("along sample: 50 values") and not found["said"]
    found = visit(url, steps=[LINE, ["click", "button[title='all of the line']"], line_of('4000'), LINE_COST])
    # The extremes of what is between are those of the line.
    assert "from -300 to 500 mV" in found["values"][-1]
    found = visit(f"{server.base}/view/m/long", steps=[LINE])
    assert "The centre of the line" not in found["said"] and not found["said"]


def test_a_line_goes_along_every_dimension_and_says_through_which_element(visit, server):
    steps = [LINE, LINE_COST, ["click", "[data-along=time]"], line_of('along time'), LINE_COST, ["click", ".dim[data-dim='2'] a[rel=next]"], ["until", "location.search.includes('at=8,11')"], line_of('lat 8'), LINE_COST, ["click", "[data-tab=image]"], SHOWN]
    found = visit(f"{server.base}/view/m/deep?tab=line&at=7,11&slice=2,1,:,:", steps=steps)
    first, second, third = found["values"][1], found["values"][4], found["values"][8]
    line = VALUES[2, 1, 7]
    assert first == f"along lon at time 2, level 1, lat 7: 30 values from {line[0]:.0f} to {line[-1]:.0f} K"
    assert second.startswith("along time at level 1, lat 7, lon 11: 6 values") and "lat 8, lon 11" in third
    # The picture is of the same plane, and marks the element.
    query = dict(urllib.parse.parse_qsl(found["url"].split("?")[1]))
    assert query["slice"] == "2,1,:,:" and query["at"] == "8,11" and not found["said"]


def test_axes_alone_make_every_plane_and_the_menu_has_them_all(visit, server):
    url = f"{server.base}/view/m/deep?axes=time,lon"
    options = ["evaluate", "[...document.querySelector('#axes').options].map((one) => one.textContent)"]
    chosen = ["evaluate", "document.querySelector('#axes').value = 'level,lat'; document.querySelector('#axes').dispatchEvent(new Event('change'))"]
    found = visit(url, steps=[SHOWN, options, chosen, ["wait", "#axes option:first-child[value='level,lat']"], SHOWN, ["until", "location.search.includes('slice=3,:,:,15')"]])
    assert len(set(found["values"][1])) == 12 and not found["said"]
    image = requests.get(f"{server.base}/v1/image/m/deep?axes=time,lon", timeout=processes.SECONDS)
    drawn = [request for request in found["requests"] if request.startswith("/v1/image/m/deep?slice=:")]
    assert image.status_code == 200 and image.headers["Array-Slice"].startswith("0:6,")
    page = requests.get(url, headers=HTML, timeout=processes.SECONDS).text
    source = re.search(r'<img id="picture" src="([^"]+)"', page)[1].replace("&amp;", "&")
    assert drawn and requests.get(f"{server.base}{source}", timeout=processes.SECONDS).headers["Array-Slice"] == image.headers["Array-Slice"]
    wrong = requests.get(f"{server.base}/view/m/deep?axes=time,nothing", headers=HTML, timeout=processes.SECONDS).text
    assert "names no two dimensions" in wrong


def test_a_table_of_structs_has_a_column_for_each_field(visit, server):
    cells = ["evaluate", "[...document.querySelectorAll('#table tr')].slice(0, 3).map((row) => [...row.children].map((cell) => cell.textContent))"]
    found = visit(f"{server.base}/view/m/events", steps=[["wait", "#table td"], cells])
    assert found["values"][-1] == [["dim_0", "id", "name", "x"], ["0", "0", "ev", "0"], ["1", "1", "ev", "0.25"]]


def test_tables_and_histograms_of_a_part_say_so_and_tables_go_anywhere(visit, server):
    found = visit(f"{server.base}/view/m/huge?tab=hist", steps=[["wait", "#histogram p"]])
    assert re.search(r"From all elements of the centre, \d+ × \d+ elements\.", found["text"])
    head = ["evaluate", "document.querySelector('#table th[scope=row]').textContent"]
    found = visit(f"{server.base}/view/m/huge?tab=table", steps=[["wait", "#table td"], head, ["fill", "[aria-label='first y']", "5"], ["until", "document.querySelector('#table th[scope=row]').textContent === '5'"]])
    assert int(found["values"][1]) > 20_000 and "of 60000" in found["text"] and not found["said"]
