"""Fields say why what is typed into them is not used, cards have every node of a mount, and lists at the side the nodes beside an array."""

import re

import numpy
import pytest
import requests
import zarr

import processes
from test_view import HTML, SHOWN


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    root = zarr.create_group(folder / "m")
    root.create_array("t", data=numpy.arange(5) * 10.0, dimension_names=("t",))
    root.create_array("cube", data=numpy.arange(5 * 60 * 80.0).reshape(5, 60, 80), dimension_names=("t", "y", "x"))
    for at in range(12):
        root.create_array(f"line{at}", data=numpy.arange(4.0))
    climate = root.create_group("climate")
    climate.create_array("v", data=numpy.ones((4, 4)))
    (folder / "files").mkdir()
    for name in ["a", "b"]:
        zarr.create_array(folder / "files" / name, data=numpy.arange(12.0).reshape(3, 4))
    zarr.create_array(folder / "one", data=numpy.arange(64.0).reshape(8, 8))
    with processes.zarrd(*(f"{name}={folder / name}" for name in ["m", "files", "one"])) as running:
        yield running


COMPLAINT = """(() => { const note = document.querySelector(".complaint"), field = document.querySelector("[aria-invalid=true]");
    return [note?.textContent ?? "", note?.getAttribute("role") ?? "", field ? field.id || field.className : "", field?.validationMessage ?? ""]; })()"""


@pytest.mark.parametrize(("typed", "why"), [
    ("abc", "two numbers"), ("5", "two numbers"), ("1,2,3", "two numbers"), ("1,x", "two numbers"), ("10%,20", "two numbers"),
    ("9,3", "smaller number comes first"), ("-1%,50%", "0% to 100%"), ("2%,198%", "0% to 100%"),
])
def test_a_range_that_is_none_is_named_and_the_old_one_stays(visit, stored, typed, why):
    steps = [SHOWN, ["fill", "#range", "100,4000"], ["pause", 300], ["fill", "#range", typed], ["pause", 500], ["evaluate", COMPLAINT]]
    found = visit(f"{stored.base}/view/m/cube", steps=steps, axe=True)
    text, role, field, message = found["values"][-1]
    assert why in text and text == message and role == "alert" and field == "range"
    assert "range=100,4000" in found["url"] and not found["said"] and not found["violations"]


def test_a_range_that_is_corrected_is_used(visit, stored):
    steps = [SHOWN, ["fill", "#range", "9,3"], ["pause", 200], ["fill", "#range", "3, 9"], ["pause", 500], ["evaluate", COMPLAINT]]
    found = visit(f"{stored.base}/view/m/cube", steps=steps)
    assert found["values"][-1] == ["", "", "", ""] and "range=3,9" in found["url"]
    steps = [SHOWN, ["fill", "#range", "0,9"], ["evaluate", """(() => { const scale = document.querySelector("#scale");
        scale.value = "log"; scale.dispatchEvent(new Event("change")); })()"""], ["pause", 500], ["evaluate", COMPLAINT]]
    assert "begins above 0" in visit(f"{stored.base}/view/m/cube", steps=steps)["values"][-1][0]


@pytest.mark.parametrize("typed", ["5", "-6", "99", "soon", "1.2.3", ""])
def test_an_index_that_is_none_is_named_and_the_old_one_stays(visit, stored, typed):
    steps = [SHOWN, ["fill", ".index", "3"], ["pause", 300], ["fill", ".index", typed], ["pause", 500], ["evaluate", COMPLAINT]]
    found = visit(f"{stored.base}/view/m/cube", steps=steps, axe=True)
    text, role, field, message = found["values"][-1]
    assert text.startswith("Not used: ") and text == message and role == "alert" and field.startswith("index")
    assert "slice=3,:,:" in found["url"] and not found["said"] and not found["violations"]
    # A step along the dimension takes the complaint back.
    found = visit(f"{stored.base}/view/m/cube", steps=[*steps, ["click", ".dim [rel=next]"], ["pause", 300], ["evaluate", COMPLAINT]])
    assert found["values"][-1] == ["", "", "", ""] and "slice=4,:,:" in found["url"]


@pytest.mark.parametrize(("typed", "index"), [("4", 4), ("-1", 0), ("29.9", 3), ("20", 2)])
def test_an_index_or_a_coordinate_is_used(visit, stored, typed, index):
    if typed == "20":
        # A whole number is an index, and there are five.
        typed = "20.0"
    steps = [SHOWN, ["fill", ".index", "1"], ["pause", 500], ["fill", ".index", typed], ["pause", 500], ["evaluate", COMPLAINT]]
    found = visit(f"{stored.base}/view/m/cube", steps=steps)
    assert found["values"][-1] == ["", "", "", ""] and f"slice={index},:,:" in found["url"]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_range_in_the_address_that_is_none_is_named(visit, stored, scripts):
    found = visit(f"{stored.base}/view/m/cube?range=abc&colormap=magma", scripts=scripts)
    assert "`range` takes" in found["text"] or "range" in found["text"].split("The picture is shown without")[0]
    assert "The picture is shown without" in found["text"] and not found["said"]
    assert not [request for request in found["requests"] if "abc" in request.split("/view/")[0]]


def page_of(running, path):
    answer = requests.get(f"{running.base}{path}", headers=HTML, timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_every_node_at_the_top_of_a_mount_has_a_link_on_the_page_of_all_mounts(stored):
    page = page_of(stored, "/")
    for path in ["m/t", "m/cube", "m/climate", *(f"m/line{at}" for at in range(12)), "files/a", "files/b", "one/"]:
        assert f'href="/view/{path}"' in page, path


@pytest.mark.parametrize(("path", "beside"), [
    ("m/cube", ["climate", "cube", "line0", "t"]), ("files/a", ["a", "b"]), ("files/b", ["a", "b"]), ("one", []), ("one/", []),
])
def test_the_list_at_the_side_of_an_array_has_the_nodes_beside_it(visit, stored, path, beside):
    [side] = re.findall(r'<nav class="tree".*?</nav>', page_of(stored, f"/view/{path}"), flags=re.DOTALL)
    assert "cannot be listed" not in side
    listed = re.findall(r'<li><a [^>]*data-node="[^"]*"[^>]*><bdi>(.*?)</bdi>', side)
    assert set(beside) <= set(listed) and (beside or not listed)
    if beside:
        assert listed == sorted(listed) and side.count('aria-current="page"') == 1
    found = visit(f"{stored.base}/view/{path}", axe=True)
    assert not found["said"] and not found["violations"]
