"""Every block of commands of README.md and of the book does what it says, as it stands.

The pages name servers at fixed addresses, directories and files. The tests have all of them (`Scene`), in other places:

    http://127.0.0.1:8000   a server with the demo, the writable mount `scratch`, and `data` with the vectors `cloud`
    http://127.0.0.1:8001   the mount `data` at the root of an address
    http://127.0.0.1:8002   the address for its operator
    https://data.example    a server with tokens: the mount `maps` with the array `rain`; the token is `token` and `$TOKEN`
    /data/zarr, /srv/zarr   a directory, the mount `climate`, and /data/scratch another
    archive.zip, *.toml     files in the working directory
    AWS_PROFILE=data        a profile of AWS in the home directory

In a shell, `zarrd serve …` is `zarrd check …`, which opens what it would serve and ends. A configuration is checked in the
same way.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import zipfile

import numpy
import pytest
import requests
import xarray
import zarr

import pages
import processes
import programs
import table

DATA = pathlib.Path(__file__).parents[1] / "data"
SECONDS = 60
"""How long a block may take."""

TOKEN = f"zs_alice_{'0123456789abcdef' * 3}"
"""A token of the test's own; the configuration has its digest alone."""
GUARDED = f"""
[access.tokens.alice]
sha256 = "{hashlib.sha256(TOKEN.split("_")[2].encode()).hexdigest()}"
grants = [{{ mount = "maps", scopes = ["read", "list", "write"] }}]
[access.signing_keys.viewer]
secret = "{'no secret' * 4}"
grants = [{{ mount = "maps", scopes = ["read", "list"] }}]
[mounts.maps]
url = "FOLDER/maps"
[mounts.data]
url = "s3://bucket/prefix"
"""
PROFILES = "[profile data]\nregion = eu-central-1\naws_access_key_id = id\naws_secret_access_key = secret\n"
OPEN = """
demo = true
[server]
admin_listen = "127.0.0.1:ADMIN"
[mounts.scratch]
url = "memory://"
writable = true
allow_prefix_delete = true
[mounts.climate]
url = "FOLDER/zarr"
[mounts.data]
url = "FOLDER/data"
listen = "127.0.0.1:0"
"""
ZARRD = """#!/bin/sh
case "$1" in
    serve) shift; exec "$ZARRD" check "$@" ;;
    check|health|token|sign|openapi) exec "$ZARRD" "$@" ;;
    *) exec "$ZARRD" check "$@" ;;
esac
"""
CURL = """#!/bin/sh
exec "$CURL" --fail-with-body --silent --show-error --max-time 30 "$@"
"""

pytestmark = pytest.mark.filterwarnings("ignore")


class Scene:
    """What the pages speak of."""

    def __init__(self, folder, running, guarded, admin):
        self.folder, self.running = folder, running
        self.places = {
            "http://127.0.0.1:8000": running.base,
            "http://127.0.0.1:8001": running.roots["data"],
            "http://127.0.0.1:8002": admin,
            "https://data.example": guarded.base,
            "/data/zarr": f"{folder}/zarr",
            "/srv/zarr": f"{folder}/zarr",
            "/data/scratch": f"{folder}/scratch",
            "/run/secrets/tls.crt": str(DATA / "tls" / "one.pem"),
            "/run/secrets/tls.key": str(DATA / "tls" / "one.key"),
        }

    def adapted(self, text):
        """The text, where everything it names is in its place here. `/v1/data/…` is no directory."""
        for place, here in self.places.items():
            text = re.sub(rf"(?<![\w.]){re.escape(place)}\b", lambda _: here, text)
        return text

    def shell(self, script):
        """Runs a script; what it prints."""
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ZARRD": os.environ["ZARRD"],
            "CURL": table.program("curl"),
            "ZARRD__SERVER__LISTEN": self.running.base.removeprefix("http://"),
            "TOKEN": TOKEN,
        }
        # `ZARRD` is not a setting: only the commands need it.
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.adapted(script)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def read(self, path):
        return zarr.open_array(self.running.store("demo", path), mode="r")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    for name in (".aws", "bin", "data", "maps", "scratch", "zarr"):
        (folder / name).mkdir()
    (folder / ".aws" / "config").write_text(PROFILES)
    shutil.copytree(DATA / "vectors" / "real" / "points_cloud.zarrvectors", folder / "data" / "cloud")
    zarr.create_array(folder / "maps" / "rain", data=numpy.arange(100.0))
    zarr.create_group(folder / "maps")
    (dataset,) = [block for block in pages.run("python") if "january.zarr\", mode" in block.text]
    # What later blocks read is there, whichever of them is run alone.
    exec(dataset.text.replace("/data/zarr", f"{folder}/zarr"), {})  # noqa: S102
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("zarr.json", '{"zarr_format": 3, "node_type": "group"}')
    for name, program in [("zarrd", ZARRD), ("curl", CURL)]:
        (folder / "bin" / name).write_text(program)
        (folder / "bin" / name).chmod(0o755)
    admin = processes.free_port()
    configurations = {"open.toml": OPEN, "zarrd.toml": GUARDED, "my.toml": "[mounts.mine]\nurl = 'memory://'\n"}
    for name, text in configurations.items():
        (folder / name).write_text(text.replace("FOLDER", str(folder)).replace("ADMIN", str(admin)))
    with (
        processes.zarrd("--config", str(folder / "open.toml"), rooted=["data"]) as running,
        processes.zarrd("--config", str(folder / "zarrd.toml")) as guarded,
    ):
        yield Scene(folder, running, guarded, f"http://127.0.0.1:{admin}")


def test_every_block_is_run_or_says_why_not():
    for block in pages.BLOCKS:
        assert block.language in pages.RUN | pages.SHOWN, f"{block}: `{block.language}` is no language of the pages"
        assert block.reason is None or (block.reason and block.language in pages.RUN), f"{block}: what is not run?"
        assert not block.is_output or block.language == "text", f"{block}: an output is text"
    least = {"sh": 20, "python": 8, "js": 5, "toml": 10}
    assert all(len(pages.run(language)) >= number for language, number in least.items())


@pytest.mark.parametrize("block", pages.run("sh"), ids=str)
def test_a_shell_runs_each_block(scene, block):
    printed = scene.shell(block.text)
    assert block.output is None or printed.decode().rstrip("\n") == block.output.rstrip("\n")


@pytest.mark.parametrize("block", pages.run("toml"), ids=str)
def test_the_server_accepts_each_block_of_configuration(scene, block):
    file = scene.folder / "block.toml"
    file.write_text(scene.adapted(block.text))
    done = subprocess.run(
        [os.environ["ZARRD"], "check", "--config", file],
        env={},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr


def reads_a_corner(scene, names):
    numpy.testing.assert_array_equal(names["corner"], scene.read("field")[0, ::20, ::40])


def reads_a_block(scene, names):
    numpy.testing.assert_array_equal(names["block"], scene.read("sharded")[40, 48:52, 56:60])


def appends_to_a_dataset(scene, _names):
    with xarray.open_zarr(scene.running.store("scratch", "days.zarr"), consolidated=False) as days:
        numpy.testing.assert_array_equal(days["day"], numpy.arange(20))
        numpy.testing.assert_array_equal(days["rain"], [*[0.0] * 5, *numpy.arange(5.0, 10.0), *numpy.arange(10.0)])


def writes_a_dataset(scene, _names):
    with xarray.open_zarr(scene.running.store("scratch", "rain.zarr"), consolidated=False) as data:
        numpy.testing.assert_array_equal(data["rain"], numpy.arange(10.0))


def writes_under_conditions(_scene, names):
    assert names["refused"] == 412


def reads_a_table(_scene, names):
    rows = names["rows"]
    assert list(rows.columns) == ["time", "lat", "lon", "field"] and len(rows) > 1
    assert rows["time"].dtype.kind == "M" and rows["lat"].between(45, 46).all() and rows["lon"].nunique() == 1


def reads_a_batch(scene, names):
    assert names["statuses"] == ["200", "200", "404"]
    assert json.loads(names["lat"]) == scene.read("lat")[:].tolist()


def january(scene):
    return xarray.open_zarr(f"{scene.folder}/zarr/january.zarr", consolidated=False)["t2m"].load()


def makes_a_dataset(scene, names):
    numpy.testing.assert_allclose(january(scene), names["t2m"], atol=0.0051)


def opens_the_dataset(scene, names):
    stored = january(scene)
    numpy.testing.assert_allclose(names["monthly"], stored.mean("time"))
    numpy.testing.assert_array_equal(names["zurich"], stored.sel(lat=50, lon=10))


def opens_a_part(scene, names):
    part = january(scene).sel(lat=slice(60, 30), time="2020-01-15")
    numpy.testing.assert_array_equal(names["europe"]["t2m"], part)


def opens_it_by_dap(scene, names):
    numpy.testing.assert_array_equal(names["afternoon"], january(scene).sel(lat=50, time="2020-01-15T18"))


def plots_a_table(scene, names):
    stored = january(scene).sel(lat=slice(70, 50), lon=10).sortby("lat")
    numpy.testing.assert_allclose(names["series"].to_numpy(), stored)
    assert (scene.folder / "january.png").read_bytes().startswith(b"\x89PNG")


def averages_a_file(scene, names):
    for latitude, mean in january(scene).mean(["time", "lon"]).to_series().items():
        numpy.testing.assert_allclose(names["means"][latitude], mean)


def opens_a_group(_scene, names):
    assert "rain" in names["group"] or "0" in names["group"]


def reads_vertices(_scene, names):
    assert len(names["x"]) == len(names["y"]) == len(names["z"]) == names["vertices"].num_rows > 0


def appends_a_frame(scene, names):
    answer = names["append"](numpy.full((64, 64), 2, "uint16"))
    assert (answer["start"], answer["stop"]) == (1, 2)


def writes_a_slice(scene, _names):
    params = {"slice": "6:8,0,0", "format": "json"}
    answer = requests.get(scene.running.data("scratch", "frames"), params=params, timeout=SECONDS)
    assert answer.json() == [0, 7]


READS = {
    "def append(frame": appends_a_frame,
    "def write(slice": writes_a_slice,
    "corner =": reads_a_corner,
    "block =": reads_a_block,
    "days.to_zarr": appends_to_a_dataset,
    "data.to_zarr": writes_a_dataset,
    "refused =": writes_under_conditions,
    "rows = pandas": reads_a_table,
    "statuses =": reads_a_batch,
    "dataset.to_zarr": makes_a_dataset,
    "monthly =": opens_the_dataset,
    "europe =": opens_a_part,
    "afternoon =": opens_it_by_dap,
    "series =": plots_a_table,
    "means =": averages_a_file,
    "group =": opens_a_group,
    "vertices =": reads_vertices,
}
"""What is seen after a block in Python that has this text."""


@pytest.mark.parametrize("block", pages.run("python"), ids=str)
def test_python_runs_each_block(scene, block, monkeypatch):
    # Files without a directory belong to the scene.
    monkeypatch.chdir(scene.folder)
    names = {"token": TOKEN}
    exec(compile(scene.adapted(block.text), str(block), "exec"), names)  # noqa: S102
    seen = [check for text, check in READS.items() if text in block.text]
    assert seen, "nothing is seen of what it does"
    for check in seen:
        check(scene, names)


def test_every_check_belongs_to_a_block():
    for text in READS:
        assert any(text in block.text for block in pages.run("python")), text
    for text in SHOWS:
        assert any(text in block.text for block in pages.run("js")), text


@pytest.fixture(scope="module")
def javascript(scene, tmp_path_factory):
    """Runs a block of JavaScript in Node; what these expressions are after it."""
    folder = programs.of_node(tmp_path_factory.mktemp("recipes"))

    def run(block, *expressions):
        program = folder / "recipe.mjs"
        shown = ", ".join(expressions)
        token = f"const token = {json.dumps(TOKEN)};\n"
        program.write_text(f"{token}{scene.adapted(block)}\nconsole.log(JSON.stringify([{shown}]));\n")
        return json.loads(programs.run("node", program))

    return run


def shows_a_block(scene, data, shape):
    numpy.testing.assert_array_equal(numpy.reshape(data, shape), scene.read("sharded")[40, 48:52, 56:60])


def shows_a_slice(scene, data, shape):
    found = numpy.reshape(data, shape).astype("float32")
    numpy.testing.assert_array_equal(found, scene.read("field")[0, ::20, ::40])


def shows_a_plane(scene, data, width, height):
    numpy.testing.assert_array_equal(numpy.reshape(data, (height, width)), scene.read("image/0")[0])


def shows_a_shape(_scene, shape):
    assert shape == [100]


SHOWS = {
    "zarr.get(": (shows_a_block, "Array.from(data)", "shape"),
    "await fetch(": (shows_a_slice, "Array.from(data)", "shape"),
    "getRaster(": (shows_a_plane, "Array.from(data)", "width", "height"),
    "Bearer": (shows_a_shape, "array.shape"),
}
"""What is seen after a block in JavaScript that has this text, and of which expressions."""


@pytest.mark.parametrize("block", pages.run("js"), ids=str)
def test_javascript_runs_each_block(scene, javascript, block):
    (found,) = [shown for text, shown in SHOWS.items() if text in block.text]
    check, *expressions = found
    check(scene, *javascript(block.text, *expressions))


SOURCES = [block for block in pages.BLOCKS if block.language == "text" and "|zarr3:" in block.text]


@pytest.mark.parametrize("block", SOURCES, ids=str)
def test_neuroglancer_shows_the_image(scene, browse, screenshots, block):
    source = scene.adapted(block.text.strip())
    layer = {"type": "image", "name": "image", "source": source}
    state = urllib.parse.quote(json.dumps({"layers": [layer], "layout": "xy"}))
    shown = browse("neuroglancer", "!" + state, screenshots / "neuroglancer-demo.png")
    pixels = programs.array(shown["screenshot"])
    # What is drawn has many colours; an empty page, and one with an error, has few.
    assert len(numpy.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 100


def test_the_pages_have_two_sources_for_neuroglancer():
    assert len(SOURCES) == 2
