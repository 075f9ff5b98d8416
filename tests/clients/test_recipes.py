"""The lines of the README that are there to be copied do what they say, as they stand."""

import json
import pathlib
import re
import urllib.parse

import numpy
import pytest
import xarray
import zarr

import processes
import programs

README = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
RECIPES = README.split("### Use it from\n")[1].split("\n## ")[0]
ADDRESS = "http://127.0.0.1:8000"

pytestmark = pytest.mark.filterwarnings("ignore")


def blocks(language):
    """The lines in this language, block by block."""
    return re.findall(rf"^```{language}\n(.*?)^```$", RECIPES, flags=re.DOTALL | re.MULTILINE)


PYTHON = blocks("python")
JAVASCRIPT = blocks("js")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The server that the recipes speak of."""
    scratch = tmp_path_factory.mktemp("scratch")
    with processes.zarrd("--demo", f"scratch={scratch}", "--writable") as running:
        yield running


def read(running, path):
    return zarr.open_array(running.store("demo", path), mode="r")


def run(running, block):
    """Runs the lines against the server; the names they leave."""
    names = {}
    exec(compile(block.replace(ADDRESS, running.base), "README.md", "exec"), names)  # noqa: S102
    return names


def test_every_block_is_looked_at_here():
    assert (len(PYTHON), len(JAVASCRIPT), len(blocks("text"))) == (4, 3, 1)


def test_xarray_reads_a_corner(running):
    names = run(running, PYTHON[0])
    numpy.testing.assert_array_equal(names["corner"], read(running, "field")[0, ::20, ::40])


@pytest.mark.parametrize("block", [1, 2], ids=["zarr-python", "numpy alone"])
def test_a_block_is_read(running, block):
    names = run(running, PYTHON[block])
    numpy.testing.assert_array_equal(names["block"], read(running, "sharded")[40, 48:52, 56:60])


def test_a_dataset_is_written_and_appended_to(running):
    run(running, PYTHON[3])
    with xarray.open_zarr(running.store("scratch", "days.zarr"), consolidated=False) as days:
        numpy.testing.assert_array_equal(days["day"], numpy.arange(20))
        numpy.testing.assert_array_equal(days["rain"], [*numpy.arange(10.0), *numpy.arange(10.0)])


@pytest.fixture(scope="module")
def javascript(running, tmp_path_factory):
    """Runs a block of JavaScript in Node; what these expressions are after it."""
    folder = programs.of_node(tmp_path_factory.mktemp("recipes"))

    def run(block, *expressions):
        program = folder / "recipe.mjs"
        told = ", ".join(expressions)
        program.write_text(f"{block.replace(ADDRESS, running.base)}\nconsole.log(JSON.stringify([{told}]));\n")
        return json.loads(programs.run("node", program))

    return run


def test_zarrita_reads_a_block(running, javascript):
    data, shape = javascript(JAVASCRIPT[0], "Array.from(data)", "shape")
    numpy.testing.assert_array_equal(numpy.reshape(data, shape), read(running, "sharded")[40, 48:52, 56:60])


def test_fetch_reads_a_slice(running, javascript):
    data, shape = javascript(JAVASCRIPT[1], "Array.from(data)", "shape")
    numpy.testing.assert_array_equal(numpy.reshape(data, shape).astype("float32"), read(running, "field")[0, ::20, ::40])


def test_viv_reads_a_plane(running, javascript):
    data, width, height = javascript(JAVASCRIPT[2], "Array.from(data)", "width", "height")
    plane = read(running, "image/0")[0]
    numpy.testing.assert_array_equal(numpy.reshape(data, (height, width)), plane)


def test_neuroglancer_shows_the_image(running, browse, screenshots):
    source = blocks("text")[0].strip().replace(ADDRESS, running.base)
    layer = {"type": "image", "name": "image", "source": source}
    state = urllib.parse.quote(json.dumps({"layers": [layer], "layout": "xy"}))
    shown = browse("neuroglancer", "!" + state, screenshots / "neuroglancer-demo.png")
    pixels = programs.array(shown["screenshot"])
    # What is drawn has many colours; an empty page, and one with an error, has few.
    assert len(numpy.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 100
