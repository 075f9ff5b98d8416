"""What pages say of datasets: where their coordinates reach, the formats that a slice is offered in, and their pictures."""

import html
import io
import re

import numpy
import pandas
import pyarrow.parquet
import pytest
import requests
import xarray

import processes
from test_view import HTML, demo  # noqa: F401
from test_view_shown import stored  # noqa: F401

TIMES = pandas.date_range("2020-01-01", periods=8, freq="6h")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of a map over time in the group `climate` of a folder, and other arrays beside it."""
    folder = tmp_path_factory.mktemp("datasets")
    values = numpy.random.default_rng(2).random((8, 20, 30), dtype="float32")
    coordinates = {
        "time": TIMES,
        "lat": ("lat", numpy.linspace(60, 50.5, 20), {"units": "degrees_north"}),
        "lon": ("lon", numpy.arange(30) * 0.25 - 2, {"units": "degrees_east"}),
        "level": ("level", numpy.array([1000, 850, 500], dtype="int32"), {"units": "hPa"}),
        "station": ("station", ["north", "middle", "south"]),
        "run": ("run", numpy.array([7], dtype="int16")),
    }
    variables = {
        "t": (("time", "lat", "lon"), values, {"long_name": "temperature", "units": "K"}),
        "profile": (("level", "lat"), values[0, :3, :20]),
        "of_station": (("station",), numpy.arange(3.0)),
        "complex": (("lat", "lon"), values[0] * 1j),
        "single": (("run",), numpy.array([1.5])),
    }
    dataset = xarray.Dataset(variables, coords=coordinates)
    encoding = {"time": {"units": "hours since 2020-01-01", "dtype": "int64"}}
    dataset.to_zarr(folder / "m", group="climate", consolidated=False, encoding=encoding)
    with processes.zarrd(f"m={folder / 'm'}") as running:
        yield running, dataset


def page_of(server, path):
    answer = requests.get(f"{server.base}{path}", headers=HTML, timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_page_of_a_dataset_says_where_its_coordinates_reach(data):
    served, _ = data
    page = page_of(served, "/view/m/climate")
    rows = {re.search(r"<bdi>(.*?)</bdi>", row)[1]: re.sub(r"<[^>]+>", "", row) for row in re.split(r"<tr[ >]", page) if "<bdi>" in row}
    for name, text in {
        "time": "2020-01-01T00:00 to 2020-01-02T18:00, every 6 hours",
        "lat": "60 to 50.5, step -0.5",
        "lon": "-2 to 5.25, step 0.25",
        "level": "1000 to 500",
        "station": "north to south",
        "run": "7",
    }.items():
        assert text in rows[name], (name, rows[name])
    assert "step" not in rows["level"] and "[hPa]" in rows["level"], rows["level"]
    assert "degrees_north" in rows["lat"]
    # The same as the document of the dataset has.
    document = requests.get(f"{served.base}/v1/nodes/m/climate?dataset", timeout=processes.SECONDS).json()
    steps = {one["name"]: one["step"] for one in document["coordinates"]}
    assert (steps["time"], steps["lat"], steps["level"]) == ("6 hours", -0.5, None)


def offered(page):
    """The links of "This slice as", by the format; a long table has another name."""
    links = re.findall(r'<a href="([^"]+)" data-format="(\w+)"[^>]*>([^<]+)</a>', page)
    return {text: html.unescape(address) for address, _, text in links}


EVERY = ["npy", "csv", "json", "arrow"]
OFFERED = {
    "t": [*EVERY, "NetCDF", "GeoTIFF", "Parquet", "CSV"],
    # Its rows do not go along y.
    "profile": [*EVERY, "NetCDF", "Parquet", "CSV"],
    "of_station": [*EVERY, "NetCDF", "Parquet", "CSV"],
    "complex": [*EVERY, "CSV"],
    "station": [*EVERY, "NetCDF", "Parquet", "CSV"],
}


@pytest.mark.parametrize("name", OFFERED)
def test_a_slice_is_offered_in_the_formats_that_it_has(data, name):
    served, _ = data
    links = offered(page_of(served, f"/view/m/climate/{name}"))
    assert list(links) == OFFERED[name]
    for text, address in links.items():
        answer = requests.get(f"{served.base}{address}", timeout=processes.SECONDS)
        assert answer.status_code == 200, (text, address, answer.text)


def paths_of_arrays(server, mount):
    keys = requests.get(f"{server.base}/store/{mount}/?recursive&format=json", timeout=processes.SECONDS).json()["keys"]
    for key in (entry["key"] for entry in keys):
        folder, _, name = key.rpartition("/")
        if name == ".zarray":
            yield folder
        if name == "zarr.json":
            document = requests.get(f"{server.base}/store/{mount}/{key}", timeout=processes.SECONDS).json()
            if document["node_type"] == "array":
                yield folder


@pytest.mark.parametrize("where", ["demo", "stored"])
def test_every_format_that_a_page_offers_is_answered(request, where):
    served, mount = request.getfixturevalue(where), {"demo": "demo", "stored": "m"}[where]
    paths = list(paths_of_arrays(served, mount))
    assert len(paths) > 8
    seen = set()
    for path in paths:
        links = offered(page_of(served, f"/view/{mount}/{path}"))
        # Whether all elements fit into the others can depend on the elements.
        for text in links.keys() - {*EVERY}:
            answer = requests.get(f"{served.base}{links[text]}", timeout=processes.SECONDS)
            assert answer.status_code == 200, (path, text, answer.text)
        seen |= links.keys()
    assert {*EVERY, "NetCDF", "Parquet", "CSV"} <= seen


def test_tables_of_a_slice_have_its_labels(data):
    served, dataset = data
    links = offered(page_of(served, "/view/m/climate/t?slice=3,:,5"))
    expected = dataset["t"][3, :, 5]
    table = pandas.read_csv(f"{served.base}{links['CSV']}")
    numpy.testing.assert_array_equal(table["lat"], expected["lat"])
    numpy.testing.assert_allclose(table["t"], expected, rtol=1e-6)
    answer = requests.get(f"{served.base}{links['Parquet']}", timeout=processes.SECONDS)
    parquet = pyarrow.parquet.read_table(io.BytesIO(answer.content))
    numpy.testing.assert_array_equal(parquet["t"].to_numpy(), expected)
    assert parquet["time"][0].as_py() == TIMES[3].to_pydatetime()


def test_the_links_of_a_slice_follow_what_is_shown(data, visit):
    served, _ = data
    links = """Object.fromEntries([...document.querySelectorAll("[data-format]")].filter((one) => !one.closest("[hidden]"))
        .map((one) => [one.textContent, one.getAttribute("href")]))"""
    step = ["key", "ArrowRight"]
    found = visit(f"{served.base}/view/m/climate/t", steps=[step, ["until", "location.search.includes('slice=1')"], ["evaluate", links]])
    shown = found["values"][-1]
    assert list(shown) == OFFERED["t"]
    for text, address in shown.items():
        assert "slice=1%2C" in address or "slice=1," in address, (text, address)
        answer = requests.get(f"{served.base}{address}", timeout=processes.SECONDS)
        assert answer.status_code == 200, (text, answer.text)
    # A plane that is no map is no GeoTIFF.
    found = visit(f"{served.base}/view/m/climate/t?axes=time,lat", steps=[["evaluate", links]])
    assert "GeoTIFF" not in found["values"][-1] and "NetCDF" in found["values"][-1]


def test_the_card_of_a_mount_shows_a_picture_of_each_dataset(data):
    served, _ = data
    page = page_of(served, "/")
    [address] = map(html.unescape, re.findall(r'<img class="small" loading="lazy" src="([^"]+)"', page))
    assert address.startswith("/v1/image/m/climate") and "size=128" in address
    assert requests.get(f"{served.base}{address}", timeout=processes.SECONDS).headers["Content-Type"] == "image/png"


@pytest.mark.parametrize("scripts", [True, False])
def test_a_table_that_is_wider_than_the_screen_is_scrolled_by_keyboard(data, visit, scripts):
    served, _ = data
    url = f"{served.base}/view/m/climate/t?tab=chunks"
    wide = """[...document.querySelectorAll("main *")].filter((one) => one.scrollWidth > one.clientWidth + 1
        && ["auto", "scroll"].includes(getComputedStyle(one).overflowX)).length"""
    found = visit(url, width=320, scripts=scripts, axe=scripts, steps=[["evaluate", wide]])
    assert not found.get("violations"), found["violations"]
    focus = ["evaluate", 'document.querySelector(".costs").closest("[tabindex=\\"0\\"]").focus()']
    scrolled = ["evaluate", 'document.querySelector(".costs").closest("[tabindex=\\"0\\"]").scrollLeft']
    region = ["evaluate", """(() => { const one = document.querySelector(".costs").closest("[tabindex]");
        return [one.getAttribute("role"), Boolean(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby"))]; })()"""]
    found = visit(url, width=240, scripts=scripts, steps=[region, focus, ["key", "ArrowRight"], ["key", "ArrowRight"], ["pause", 400], scrolled])
    assert found["values"][0] == ["region", True]
    assert found["values"][-1] > 0, found["values"]
