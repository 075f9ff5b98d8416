"""The pages for people in Chromium: they load nothing from other origins, say no error, work without scripts and by the
keyboard alone, and show of hostile attributes nothing but text."""

import base64
import gzip
import hashlib
import html
import json
import os
import re
import subprocess
import zipfile

import numpy
import pytest
import requests
import zarr

import pages
import processes

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGES = [
    "/",
    "/view/demo/",
    "/view/demo/image",
    "/view/demo/image/labels/nuclei",
    "/view/demo/field",
    "/view/demo/field?tab=line",
    "/view/demo/field?tab=table",
    "/view/demo/field?tab=hist",
    "/view/demo/field?tab=chunks",
    "/view/demo/field?tab=meta",
    "/view/demo/field?tab=use",
    "/view/demo/tree/other/yes",
    "/view/demo/time",
    "/view/demo/points",
    "/view/demo/image?labels=nuclei",
]
"""One of each type."""

SHOWN = ["until", "document.querySelector('canvas[data-ready]')"]
"""Waits until the picture is drawn."""

EVIL = "<script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"


@pytest.fixture(scope="module")
def demo():
    with processes.zarrd("--demo") as running:
        yield running


def image(root, path, labels=None, name="cells"):
    """An image of one level and two channels; with a list of labels, if there are some."""
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": EVIL}, {"name": "x", "type": "space"}]
    datasets = [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5, 0.5]}]}]
    channels = [{"label": name, "color": "FF0000", "active": True, "window": {"start": 0, "end": 80, "min": 0, "max": 80}}, {"label": EVIL, "color": "url(x)"}]
    ome = {"version": "0.5", "multiscales": [{"name": name, "axes": axes, "datasets": datasets}], "omero": {"channels": channels}}
    group = root.create_group(path, attributes={"ome": ome})
    group.create_array("0", data=numpy.arange(2 * 40 * 30, dtype="uint8").reshape(2, 40, 30) % 80, chunks=(1, 20, 20), dimension_names=("c", "y", "x"))
    if labels:
        root.create_group(f"{path}/labels", attributes={"ome": {"version": "0.5", "labels": labels}})


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A server of arrays with hostile attributes and of many types."""
    folder = tmp_path_factory.mktemp("stored")
    values = numpy.arange(4 * 30 * 40, dtype="float32").reshape(4, 30, 40)
    attributes = {
        "title": EVIL, EVIL: "javascript:alert(1)", "rtl": "\u202egnirts", "long": "x" * (1 << 20),
        "units": EVIL, "long_name": EVIL,
    }
    deep = "bottom"
    # Documents that are nested more deeply are invalid.
    for _ in range(40):
        deep = {"deeper": deep}
    root = zarr.create_group(folder, attributes=attributes)
    array = root.create_array("evil", shape=values.shape, chunks=(1, 10, 10), dtype="float32", dimension_names=("t", "y", "x"))
    array[...] = values
    array.attrs.update(attributes | {"deep": deep})
    for name in ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "complex64"]:
        root.create_array(name, data=(numpy.arange(80).reshape(8, 10) % 7).astype(name))
    root.create_array("text", data=numpy.array(["a", EVIL, "c"]))
    image(root, "image", labels=[EVIL, "../evil", "", 7, "nuclei"])
    image(root, f"image/labels/{EVIL.replace('/', '')}", name=EVIL)
    image(root, "image/labels/nuclei")
    wells = [{"path": f"{row}/{column}", "rowIndex": at, "columnIndex": 0} for at, row in enumerate("AB") for column in "1"]
    wells += [{"path": "../../evil", "rowIndex": 0, "columnIndex": 1}, {"path": EVIL, "rowIndex": 1, "columnIndex": 1}]
    plate = {"name": EVIL, "rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}, {"name": EVIL}], "wells": wells}
    root.create_group("plate", attributes={"ome": {"version": "0.5", "plate": plate}})
    for row in "AB":
        root.create_group(f"plate/{row}/1", attributes={"ome": {"version": "0.5", "well": {"images": [{"path": "0"}, {"path": EVIL}]}}})
        image(root, f"plate/{row}/1/0")
    with processes.zarrd(f"stored={folder}") as running:
        yield running


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_loads_nothing_from_other_origins(visit, demo, path, dark):
    found = visit(f"{demo.base}{path}", axe=True, dark=dark)
    assert found["status"] == 200 and not found["others"] and not found["said"], found
    assert found["violations"] == []


@pytest.mark.parametrize("path", ["/view/demo/feild", "/view/nothing/", "/nothing"])
def test_a_missing_page_is_a_page_that_leads_on(visit, demo, path):
    found = visit(f"{demo.base}{path}", axe=True)
    assert found["status"] == 404 and not found["others"] and found["violations"] == []
    assert "404 Not Found" in found["text"] and "All data on this server" in found["text"]
    if path.endswith("feild"):
        assert re.search("did you mean /?field", found["text"])
    # A program gets the problem document.
    answer = requests.get(f"{demo.base}{path}", timeout=processes.SECONDS)
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_works_without_scripts(visit, demo, path):
    found = visit(f"{demo.base}{path}", scripts=False)
    assert found["status"] == 200 and not found["others"]
    if path == "/view/demo/field":
        assert any(request.startswith("/v1/image/demo/field?slice=0") for request in found["requests"])
        assert "sea surface temperature" in found["text"]


def test_dimensions_are_stepped_through_without_scripts(visit, demo):
    found = visit(f"{demo.base}/view/demo/field", scripts=False, steps=[["click", ".dim a[rel=next]"], ["click", ".dim a[rel=next]"]])
    assert found["url"] == "/view/demo/field?slice=2,:,:"


def test_the_page_of_an_array_is_small(demo):
    page = requests.get(f"{demo.base}/view/demo/field", headers=HTML, timeout=processes.SECONDS)
    assert len(gzip.compress(page.content)) <= 12 << 10
    files = set(re.findall(r'(?:href|src)="(/view/-/[^"]+)"', page.text))
    answers = [requests.get(f"{demo.base}{path}", timeout=processes.SECONDS) for path in files]
    assert len(answers) == 1, "all scripts are one file"
    assert all(answer.status_code == 200 and "immutable" in answer.headers["Cache-Control"] for answer in answers)
    assert sum(len(gzip.compress(answer.content)) for answer in answers) <= 60_000


def test_pages_have_a_strict_policy(demo):
    for path in [*PAGES, "/view/nothing/"]:
        page = requests.get(f"{demo.base}{path}", headers=HTML, timeout=processes.SECONDS)
        headers, style = page.headers, re.search("<style>(.*?)</style>", page.text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == f"'sha256-{digest}'"
        assert headers["Referrer-Policy"] == "same-origin" and headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["evil", "evil?tab=meta", "evil?tab=use", "", "text", "image", "image?labels=nuclei", "image/labels", "plate", "plate/A/1", "plate/A/1/0"],
)
def test_hostile_attributes_are_text(visit, stored, path):
    found = visit(f"{stored.base}/view/stored/{path}", steps=[["evaluate", "window.broken"]])
    assert found["status"] == 200 and not found["others"] and not found["said"], found["said"]
    assert found["values"] == [None]
    page = requests.get(f"{stored.base}/view/stored/{path}", headers=HTML, timeout=processes.SECONDS).text
    assert "<script>" not in page and "<img src=x" not in page
    assert len(page) < 200_000


@pytest.mark.parametrize("path", ["", "image?labels=nuclei", "plate", "plate/B/1", "plate/B/1/0"])
def test_images_and_plates_are_accessible(visit, stored, path):
    found = visit(f"{stored.base}/view/stored/{path}", axe=True)
    assert found["status"] == 200 and not found["others"] and not found["said"], found
    assert found["violations"] == []
    if path == "plate":
        # Only wells whose paths are plain have pictures.
        assert sorted(one.split("&")[0] for one in found["requests"] if one.startswith("/v1/image/")) == [f"/v1/image/stored/plate/{row}/1?size=96" for row in "AB"]


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "complex64"])
def test_the_element_under_the_pointer_is_that_of_the_array(visit, stored, name):
    # Element (3, 4) is 34 % 7 = 6, or true.
    steps = [SHOWN, ["evaluate", """(() => {
        const canvas = document.querySelector("canvas"), rect = canvas.getBoundingClientRect();
        const at = { clientX: rect.left + rect.width * 4.5 / 10, clientY: rect.top + rect.height * 3.5 / 8, bubbles: true };
        const scale = Math.min(rect.width / 10, rect.height / 8);
        at.clientX = rect.left + rect.width / 2 + (4.5 - 5) * scale;
        at.clientY = rect.top + rect.height / 2 + (3.5 - 4) * scale;
        canvas.dispatchEvent(new PointerEvent("pointermove", at));
        return document.querySelector("#readout").textContent;
    })()"""]]
    found = visit(f"{stored.base}/view/stored/{name}", steps=steps)
    assert not found["said"], found["said"]
    assert found["values"][1].endswith("= 1" if name == "bool" else "= 6"), found["values"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("image", r"^(10|20|50|100) µm$"),
        ("image?box=100,100,20,20", r"^\d µm$"),
        ("points", r"^(50|100) µm$"),
        ("field", None),
    ],
)
def test_a_bar_has_the_length_that_it_says(visit, demo, path, text):
    bar = "(() => { const bar = document.querySelector('.scale-bar'); return bar && [bar.textContent, bar.clientWidth]; })()"
    found = visit(f"{demo.base}/view/demo/{path}", steps=[SHOWN, ["pause", 300], ["evaluate", bar]])["values"][-1]
    if text is None:
        assert found is None
        return
    assert re.search(text, found[0]), found
    # A pixel of the image is a quarter of a micrometer.
    if path.startswith("image"):
        sides = "(() => { const { width, height } = document.querySelector('#stage canvas').getBoundingClientRect(); return [width, height]; })()"
        width, height = visit(f"{demo.base}/view/demo/{path}", steps=[SHOWN, ["pause", 300], ["evaluate", sides]])["values"][-1]
        shown = 20 if "box" in path else 512
        expected = float(found[0].split()[0]) / 0.25 * min(width, height) / shown
        # Sides are whole pixels.
        assert abs(found[1] - expected) <= 1


COLORS = """(() => {
    const canvas = document.querySelector("canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return [canvas.width, canvas.height, Array.from(data).reduce((sum, one, at) => (sum * 31 + one + at) % 1000003, 7)];
})()"""
"""The pixels of the picture as a number."""


@pytest.mark.parametrize(
    "path",
    ["field?slice=5,:,:&colormap=magma&range=0,20&scale=sqrt", "field?slice=7,:,:&box=20,10,60,40&at=45,20&grid=1",
     "image?channels=0:ff0000:0:200,2:00ff00:10:90"],
)
def test_a_copied_link_shows_the_same(visit, demo, path):
    steps = [SHOWN, ["pause", 700], ["evaluate", COLORS]]
    first = visit(f"{demo.base}/view/demo/{path}", steps=steps)
    again = visit(f"{demo.base}{first['url']}", steps=steps)
    assert first["values"][-1] == again["values"][-1] and first["url"] == again["url"]
    other = visit(f"{demo.base}/view/demo/{path.split('?')[0]}", steps=steps)
    assert other["values"][-1] != first["values"][-1]


def test_the_keyboard_alone_finds_an_array_and_changes_its_slice(visit, demo):
    steps = [
        ["key", "/"], ["type", "fiel"], ["key", "Enter"], ["wait", "canvas[data-ready]"],
        ["key", "ArrowRight"], ["key", "Shift+ArrowRight"], ["key", "c"], ["key", "g"], ["pause", 700],
    ]
    found = visit(f"{demo.base}/view/demo/", steps=steps)
    assert found["url"] == "/view/demo/field?slice=11,:,:&colormap=magma&grid=1"
    assert "2026-01-01 11:00" in found["text"]


REQUESTS = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/')).length"
"""How much the page asked of the server."""


def test_colours_and_range_need_no_request(visit, demo):
    steps = [SHOWN, ["pause", 1200], ["evaluate", REQUESTS],
             ["evaluate", "document.querySelector('#colormap').value = 'magma', document.querySelector('#colormap').dispatchEvent(new Event('change'))"],
             ["fill", "#range", "0,10"], ["pause", 500], ["evaluate", REQUESTS]]
    found = visit(f"{demo.base}/view/demo/field?slice=23,:,:", steps=steps)
    assert found["values"][2] == found["values"][-1]
    assert "colormap=magma&range=0,10" in found["url"]


def test_a_dragged_slider_ends_at_its_last_place_with_few_requests(visit, demo):
    steps = [SHOWN, ["drag", "#dim-0", 500], ["pause", 900], ["evaluate", "document.querySelector('.index').value"]]
    found = visit(f"{demo.base}/view/demo/field", steps=steps)
    assert found["values"][-1] == str(499 % 24) and found["url"].startswith(f"/view/demo/field?slice={499 % 24},:,:")
    read = [request for request in found["requests"] if request.startswith("/v1/data/demo/field?")]
    assert len(read) == len(set(read)), read
    # There are 24 planes. Where a transfer takes long, as beside other load, some are read coarser meanwhile.
    whole = [request for request in read if "&fit=" not in request]
    assert len(whole) <= 24 and len(read) <= 2 * 24, read


def test_a_slider_over_a_slow_connection_shows_coarser_planes_and_the_whole_when_it_stops(visit, demo):
    """After the first plane, whose transfer shows how slow the connection is."""
    moves = [step for at in range(1, 12) for step in (["fill", ".index", str(at)], ["pause", 100])]
    steps = [SHOWN, ["throttle", 100_000], *moves, ["pause", 3000], ["evaluate", "document.querySelector('#cost').textContent"]]
    found = visit(f"{demo.base}/view/demo/field", steps=steps)
    read = [request for request in found["requests"] if request.startswith("/v1/data/demo/field?slice=")]
    coarser = ["&fit=" in request for request in read]
    assert True in coarser and not coarser[-1], read
    assert read[-1].startswith("/v1/data/demo/field?slice=11,:,:") and "one pixel for" not in found["values"][-1]


def test_a_click_plots_the_other_dimensions(visit, demo):
    found = visit(f"{demo.base}/view/demo/field?at=45,20", steps=[SHOWN, ["until", "document.querySelectorAll('#profiles svg').length === 3"]])
    assert "along time" in found["text"] and not found["said"]


def test_more_than_the_budget_is_not_loaded_unasked(visit, tmp_path):
    array = zarr.create_array(tmp_path / "large", shape=(100, 20000, 20000), chunks=(100, 1000, 1000), dtype="float32", dimension_names=("t", "y", "x"))
    array[0, 0, 0] = 1
    with processes.zarrd(f"data={tmp_path}") as running:
        found = visit(f"{running.base}/view/data/large", steps=[["pause", 500]])
        assert not [request for request in found["requests"] if request.startswith("/v1/data/data/large")]
        assert "more than is loaded unasked" in found["text"]


def properties(page):
    """The metadata that programs read which show a link."""
    return dict(re.findall(r'<meta property="(og:[a-z:_]+)" content="([^"]*)">', page))


@pytest.mark.parametrize(
    ("path", "title", "picture"),
    [
        ("/view/demo/field", "field – demo", True),
        ("/view/demo/field?slice=5,:,:&colormap=magma", "field – demo", True),
        ("/view/demo/image", "image – demo", True),
        ("/view/demo/", "demo – demo", True),
        ("/view/demo/time", "time – demo", False),
        ("/", "zarrd", False),
        ("/view/demo/nothing", "404 Not Found", False),
    ],
)
def test_a_link_has_a_title_and_a_picture(demo, path, title, picture):
    page = requests.get(f"{demo.base}{path}", headers=HTML, timeout=processes.SECONDS).text
    found = properties(page)
    assert found["og:title"] == title and ("og:image" in found) == picture
    if picture:
        address = html.unescape(found["og:image"])
        assert address.startswith(f"{demo.base}/v1/image/demo/")
        answer = requests.get(address, timeout=processes.SECONDS)
        assert answer.status_code == 200 and answer.headers["Content-Type"] == found["og:image:type"]
        assert ("colormap=magma" in address) == ("colormap=magma" in path)


def test_lists_have_small_pictures_that_are_loaded_when_they_are_seen(demo):
    pictures = {
        "/": ["field", "image", "sharded"],
        "/view/demo/": ["field", "image", "sharded"],
        "/view/demo/image/labels": ["nuclei"],
        "/view/demo/v2": ["blosc"],
    }
    for path, names in pictures.items():
        page = requests.get(f"{demo.base}{path}", headers=HTML, timeout=processes.SECONDS).text
        found = re.findall(r'<img class="(?:small|field)" loading="lazy" src="([^"]+)"', page)
        assert sorted(address.split("?")[0].split("/")[-1] for address in found) == names, path
        for address in map(html.unescape, found):
            assert "size=128" in address
            assert requests.get(f"{demo.base}{address}", timeout=processes.SECONDS).status_code == 200, address


def test_a_listing_leads_browsers_to_the_page(demo):
    listing = requests.get(f"{demo.base}/store/demo/image/", headers=HTML, timeout=processes.SECONDS).text
    assert 'action="/view/demo/image"' in listing
    plain = requests.get(f"{demo.base}/store/demo/image/", timeout=processes.SECONDS).text
    assert "/view/" not in plain


def test_a_hundred_thousand_children_have_a_page(visit, tmp_path):
    document = json.dumps({"zarr_format": 3, "node_type": "group"})
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        archive.writestr("zarr.json", document)
        for number in range(100_000):
            archive.writestr(f"{number:06}/zarr.json", document)
    with processes.zarrd(f"data={tmp_path / 'many.zip'}") as running:
        found = visit(f"{running.base}/view/data/")
        assert found["status"] == 200 and "Only the first 200" in found["text"]


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """A server whose only mount needs a token, and the token."""
    folder = tmp_path_factory.mktemp("private")
    zarr.create_array(folder / "secret", data=numpy.zeros((3, 4)))
    command = [os.environ["ZARRD"], "token", "reader"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    token = re.search(r"zs_reader_\w+", printed)
    digest = re.search(r'sha256 = "(\w+)"', printed)
    config = tmp_path_factory.mktemp("config") / "zarrd.toml"
    config.write_text(f"""
        [mounts.private]
        url = {json.dumps(str(folder))}
        writable = true
        [access.tokens.reader]
        sha256 = "{digest[1]}"
        grants = [{{ mount = "private", scopes = ["read", "list", "write"] }}]
    """)
    with processes.zarrd("--config", str(config)) as running:
        running.token = token[0]
        yield running


def test_nothing_leaks_before_signing_in_and_the_cookie_is_for_reading_alone(private):
    session = requests.Session()
    for path in ["/", "/view/private/", "/view/private/secret", "/view/other/"]:
        page = session.get(f"{private.base}{path}", headers=HTML, timeout=processes.SECONDS)
        assert "secret" not in page.text.replace(path, ""), path
        assert page.status_code == (200 if path == "/" else 401)
        if path != "/":
            assert 'name="token"' in page.text
    refused = session.post(f"{private.base}/view/-/session", data={"token": "wrong"}, timeout=processes.SECONDS)
    assert "not valid" in refused.text and "Set-Cookie" not in refused.headers
    foreign = session.post(f"{private.base}/view/-/session", data={"token": private.token}, headers={"Origin": "http://evil.example"}, timeout=processes.SECONDS)
    assert foreign.status_code == 403 and "Set-Cookie" not in foreign.headers
    signed_in = session.post(f"{private.base}/view/-/session", data={"token": private.token}, allow_redirects=False, timeout=processes.SECONDS)
    cookie = signed_in.headers["Set-Cookie"]
    assert signed_in.status_code == 303
    assert cookie.startswith("__Host-zarrd=") and all(word in cookie for word in ["HttpOnly", "Secure", "SameSite=Strict", "Path=/"])
    by_cookie = {"Cookie": cookie.split(";")[0]}
    page = requests.get(f"{private.base}/view/private/secret", headers=HTML | by_cookie, timeout=processes.SECONDS)
    assert page.status_code == 200 and "Sign out" in page.text and "private" in page.headers["Cache-Control"]
    url = f"{private.base}/store/private/key"
    assert requests.put(url, data=b"1", headers=by_cookie, timeout=processes.SECONDS).status_code == 401
    by_token = {"Authorization": f"Bearer {private.token}"}
    assert requests.put(url, data=b"1", headers=by_token, timeout=processes.SECONDS).status_code == 201


def test_a_browser_signs_in_and_reads(visit, private):
    steps = [["fill", "#token", private.token], SHOWN]
    found = visit(f"{private.base}/view/private/secret", steps=steps)
    assert found["url"].startswith("/view/private/secret") and "Sign out" in found["text"]


def test_the_pages_can_be_switched_off(tmp_path):
    config = tmp_path / "zarrd.toml"
    config.write_text("demo = true\n[server]\nui = false\n")
    with processes.zarrd("--config", str(config)) as running:
        for path in ["/view/demo/", "/view/demo/field", "/view/-/session", "/view/-/0/page.js"]:
            assert requests.get(f"{running.base}{path}", headers=HTML, timeout=processes.SECONDS).status_code == 404
        assert requests.get(f"{running.base}/", headers=HTML, timeout=processes.SECONDS).status_code == 200


def test_the_scripts_have_the_types_that_their_comments_say(folder):
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    scripts = sorted(map(str, (pages.ROOT / "src/page/assets").glob("*.js")))
    options = ["--checkJs", "--allowJs", "--noEmit", "--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable"]
    done = subprocess.run(["node", str(compiler), *options, *scripts], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
