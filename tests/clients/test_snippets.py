"""The lines of the tab "Use it" do what they say, as they stand: what they read is what the server has for that slice."""

import html
import io
import json
import re
import shlex
import subprocess
import urllib.parse

import numpy
import PIL.Image
import pytest
import requests
import zarr

import processes
import programs
import table

HTML = {"Accept": "text/html"}
VALUES = numpy.random.default_rng(5).integers(-1000, 1000, (4, 12, 15)).astype("int16")
SLICES = ["field?slice=5,:,:", "field?slice=5,10:40:3,17", "sharded?slice=40,48:52,56:60", "v2/blosc?slice=10:200:7,3:90", "time", "image/0?slice=1,:,100"]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The demo, and an array whose path has what URLs, shells and programs give a meaning of their own."""
    folder = tmp_path_factory.mktemp("snippets")
    array = zarr.create_group(folder / "m").create_array("a b/c'd & $x#é", shape=VALUES.shape, chunks=(2, 5, 5), dtype="int16", dimension_names=("t", "y", "x"))
    array[...] = VALUES
    struct = numpy.zeros((6, 7), dtype=[("a b", "f4"), ("c", "i2")])
    struct["a b"], struct["c"] = numpy.arange(42).reshape(6, 7), numpy.arange(42).reshape(6, 7) % 5
    zarr.create_array(folder / "m/struct", data=struct, chunks=(4, 4), zarr_format=2)
    packed = zarr.create_array(folder / "m/packed", data=VALUES[0].astype("int16"), chunks=(5, 5), dimension_names=("y", "x"))
    packed.attrs.update({"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": int(VALUES[0].flat[3])})
    zarr.create_array(folder / "m/texts", data=numpy.array(["a", "bc"], dtype="<U4"), zarr_format=3)
    for name in TYPES:
        zarr.open_group(folder / "m").create_array(f"types/{name}", data=numpy.abs(VALUES).astype(name), chunks=(2, 5, 5))
    with processes.zarrd(f"m={folder / 'm'}", "--demo") as running:
        yield running


def snippets(running, path):
    """The lines for each program."""
    mount = "" if path.startswith("m/") else "demo/"
    joined = "&" if "?" in path else "?"
    page = requests.get(f"{running.base}/view/{mount}{path}{joined}tab=use", headers=HTML, timeout=processes.SECONDS).text
    found = re.findall(r'<article class="snippet"><h2>(.*?)</h2>.*?<pre[^>]*><code>(.*?)</code></pre>', page, flags=re.DOTALL)
    return {html.unescape(title): html.unescape(text) for title, text in found}


def elements(running, path):
    """What the server has for the slice."""
    mount = "" if path.startswith("m/") else "demo/"
    joined = "&" if "?" in path else "?"
    answer = requests.get(f"{running.base}/v1/data/{mount}{path}{joined}format=npy", timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    return numpy.load(io.BytesIO(answer.content))


TYPES = ["float16", "int64", "float64", "uint64", "uint8"]
"""Types that some viewers do not read."""

# Slices without elements, and with steps backwards.
CORNERS = ["field?slice=5,3:3,:", "field?slice=5,3:3:-2,2:9:4", "field?slice=5,40:10:-3,::-1", "v2/blosc?slice=200:10:-7,3:90"]
ODD = "m/" + urllib.parse.quote("a b/c'd & $x#é") + "?slice=::-1,3:9:2,1"
PATHS = [*SLICES, *CORNERS, ODD]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("title", ["Python · zarr", "Python · xarray", "Python · numpy"])
def test_python_reads_the_slice(running, path, title):
    names = {}
    exec(compile(snippets(running, path)[title], title, "exec"), names)  # noqa: S102
    # xarray decodes times.
    expected = elements(running, f"{path}?decode=cf" if (path, title) == ("time", "Python · xarray") else path)
    numpy.testing.assert_array_equal(numpy.asarray(names["values"]), expected)


def test_values_are_the_same_for_all_programs_of_python(running):
    """Packed elements without coordinates beside them, some of which are missing."""
    expected = elements(running, "m/packed?decode=cf")
    assert numpy.isnan(expected).any()
    for title in ["Python · zarr", "Python · xarray", "Python · numpy"]:
        names = {}
        exec(compile(snippets(running, "m/packed")[title], title, "exec"), names)  # noqa: S102
        numpy.testing.assert_array_equal(numpy.asarray(names["values"]), expected, title)


@pytest.mark.parametrize(("path", "level"), [("image", "image/0"), ("image/labels/nuclei", "image/labels/nuclei/0")])
def test_ome_zarr_reads_the_image_of_the_page(running, path, level):
    names = {}
    exec(compile(snippets(running, path)["Python · ome-zarr"], path, "exec"), names)  # noqa: S102
    numpy.testing.assert_array_equal(numpy.asarray(names["levels"][0]), elements(running, level))


def test_lines_that_cannot_work_are_left_out(running):
    texts = snippets(running, "m/texts")
    assert {"QGIS", "JavaScript · zarrita"}.isdisjoint(texts) and "gdal_translate" not in texts["GDAL"]


FIELDS = ["m/struct?fields=a+b", "m/struct?slice=::-1,3&fields=c"]


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("title", ["Python · zarr", "Python · xarray", "Python · numpy"])
def test_python_reads_the_field_of_a_struct(running, path, title):
    test_python_reads_the_slice(running, path, title)


def test_lines_for_programs_without_structs_are_left_out(running):
    for path in FIELDS:
        assert {"GDAL", "QGIS", "JavaScript · zarrita", "Neuroglancer", "Viv"}.isdisjoint(snippets(running, path))


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Runs lines in Node; what an expression is after them."""
    folder = programs.of_node(tmp_path_factory.mktemp("snippets-node"))

    def run(text, expression):
        program = folder / "snippet.mjs"
        program.write_text(f"{text}\nconsole.log(JSON.stringify({expression}));\n")
        return json.loads(programs.run("node", program))

    return run


@pytest.mark.parametrize("path", PATHS)
def test_zarrita_reads_the_slice(running, node, path):
    expected = elements(running, path)
    if not expected.size:
        # Zarrita reads none.
        assert "JavaScript · zarrita" not in snippets(running, path)
        return
    lines = snippets(running, path)["JavaScript · zarrita"]
    # Steps backwards are turned by the lines themselves.
    values = "values" if "const values" in lines else "data"
    data, shape, stride = node(f"{lines.replace('{ data, shape }', '{ data, shape, stride }')}", f"[Array.from({values}), shape, stride]")
    found = numpy.array(data, dtype=float).astype(expected.dtype)
    found = numpy.lib.stride_tricks.as_strided(found, shape, [found.itemsize * by for by in stride])
    numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("path", [*PATHS, *FIELDS])
def test_fetch_reads_the_slice(running, node, path):
    expected = elements(running, path)
    values = node(snippets(running, path)["JavaScript · fetch"], "values")
    numpy.testing.assert_array_equal(numpy.array(values, dtype=float).astype(expected.dtype).reshape(expected.shape), expected)


@pytest.mark.parametrize("path", [*PATHS, *FIELDS])
def test_curl_reads_the_slice(running, tmp_path, path):
    lines = snippets(running, path)["curl"]
    done = subprocess.run(["bash", "-euc", lines], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "slice.npy"), elements(running, path))


def test_gdal_reads_the_array(running, tmp_path):
    # Debian's GDAL reads v2 alone.
    for line in snippets(running, "v2/blosc")["GDAL"].splitlines():
        program, *arguments = shlex.split(line)
        command = [table.program(program), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    numpy.testing.assert_array_equal(numpy.asarray(PIL.Image.open(tmp_path / "picture.tif")), elements(running, "v2/blosc"))


@pytest.mark.parametrize("path", PATHS)
def test_the_addresses_of_what_does_not_run_here_respond(running, path):
    lines = snippets(running, path)
    table_of_r = re.fullmatch(r'values <- read\.csv\("(http://[^"\s]+)"\)', lines["R"])[1]
    expected = elements(running, path)
    rows = requests.get(table_of_r, timeout=processes.SECONDS)
    assert rows.status_code == 200 and rows.headers["Content-Type"].startswith("text/csv")
    found = numpy.genfromtxt(io.StringIO(rows.text), delimiter=",", skip_header=1)
    numpy.testing.assert_array_equal(found.astype(expected.dtype).reshape(expected.shape), expected)
    store = re.search(r'^array = zopen\("(http://[^"\s]+)"\)', lines["Julia"], flags=re.MULTILINE)[1]
    if path == "time":
        # An array of one dimension is no raster.
        assert "QGIS" not in lines and lines["GDAL"] == f"gdalmdiminfo 'ZARR:\"/vsicurl/{store}\"'"
    else:
        assert re.fullmatch(r'ZARR:"/vsicurl/(http://[^"\s]+)"(:/[^:]+(:\d+)+)?', lines["QGIS"])[1] == store
    documents = [requests.get(f"{store}/{name}", timeout=processes.SECONDS).status_code for name in ["zarr.json", ".zarray"]]
    assert 200 in documents
    if path == "time":
        # An array of one dimension is no image.
        assert not {"Neuroglancer", "Viv"} & set(lines)
        return
    source = re.fullmatch(r"zarr://(http://[^\s]+)/", lines["Neuroglancer"])[1]
    assert source.startswith(f"{running.base}/pyramid/")
    # The array of a level leads to its image.
    assert source.endswith("/image") == path.startswith("image/0")


IMAGES = [path for path in PATHS if path != "time"] + [f"m/types/{name}" for name in TYPES]
READ_BY_NEUROGLANCER = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "float32"}
NOT_READ_BY_BROWSERS = {"float16", "int64", "uint64"}


@pytest.mark.parametrize("path", IMAGES)
def test_viewers_get_a_multiscale_image(running, node, path):
    lines = snippets(running, path)
    source = re.fullmatch(r"zarr://(http://[^\s]+)/", lines["Neuroglancer"])[1]
    (multiscale,) = requests.get(f"{source}/zarr.json", timeout=processes.SECONDS).json()["attributes"]["ome"]["multiscales"]
    shapes = []
    assert multiscale["datasets"]
    for level in multiscale["datasets"]:
        document = requests.get(f"{source}/{level['path']}/zarr.json", timeout=processes.SECONDS).json()
        assert document["dimension_names"] == [axis["name"] for axis in multiscale["axes"]]
        shapes.append(document["shape"])
        assert document["data_type"] in READ_BY_NEUROGLANCER
    assert node(lines["Viv"], "data.map((level) => level.shape)") == shapes
    of_viv = re.search(r'"(http://[^"]+)"', lines["Viv"])[1]
    assert requests.get(f"{of_viv}/0/zarr.json", timeout=processes.SECONDS).json()["data_type"] not in NOT_READ_BY_BROWSERS
    assert node(lines["Viv"], "(await data.at(-1).getRaster({ selection: Object.fromEntries(data[0].labels.slice(0, -2).map((name) => [name, 0])) })).data.length") > 0


def test_every_program_is_run_or_checked(running):
    run = {"Python · zarr", "Python · xarray", "Python · numpy", "JavaScript · zarrita", "JavaScript · fetch", "curl", "GDAL"}
    assert set(snippets(running, "field")) == run | {"R", "Julia", "QGIS", "Neuroglancer", "Viv"}
