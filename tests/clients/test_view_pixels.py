"""What a page draws on its canvas is the picture of the same URL, pixel by pixel: numbers of all types, missing ones,
colours, channels and labels; and the points of a store of vectors are where their coordinates say."""

import io

import numpy
import PIL.Image
import pytest
import requests

import processes
from test_images import TYPES, path_of, pictures  # noqa: F401

SHOWN = ["until", "document.querySelector('#stage canvas[data-ready]')"]
"""Waits until the picture is drawn."""

ELEMENTS = """((width, height) => {
    const canvas = document.querySelector("#stage canvas");
    const scale = Math.min(canvas.width / width, canvas.height / height);
    const left = (canvas.width - width * scale) / 2, top = (canvas.height - height * scale) / 2;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = [];
    for (let y = 0; y < height; y += 1) {
        for (let x = 0; x < width; x += 1) {
            const at = 4 * (Math.floor(top + (y + 0.5) * scale) * canvas.width + Math.floor(left + (x + 0.5) * scale));
            found.push(data[at], data[at + 1], data[at + 2], data[at + 3]);
        }
    }
    return found;
})"""
"""The pixel of the canvas at the middle of each element of the plane."""


@pytest.fixture(scope="module")
def demo():
    with processes.zarrd("--demo") as running:
        yield running


def picture(running, path):
    """The picture of a URL, as numpy has it: the same URL as that of the page, but for one segment."""
    joined = "&" if "?" in path else "?"
    answer = requests.get(f"{running.base}/v1/image/{path}{joined}size=max", timeout=processes.SECONDS)
    assert answer.status_code == 200, answer.text
    return numpy.asarray(PIL.Image.open(io.BytesIO(answer.content)).convert("RGBA"))


def canvas(visit, running, path, shape, **question):
    """What the canvas of a page shows of each element of a plane."""
    height, width = shape
    steps = [SHOWN, ["pause", 300], ["evaluate", f"{ELEMENTS}({width}, {height})"]]
    found = visit(f"{running.base}/view/{path}", steps=steps, **question)
    assert not found["said"] and not found["others"], found
    return numpy.array(found["values"][-1], "uint8").reshape(height, width, 4)


def assert_same(visit, running, path):
    expected = picture(running, path)
    numpy.testing.assert_array_equal(canvas(visit, running, path, expected.shape[:2]), expected)


@pytest.mark.parametrize("name", TYPES)
def test_numbers_of_all_types_have_the_colours_of_the_picture(visit, pictures, name):  # noqa: F811
    assert_same(visit, pictures, f"m/{path_of(name)}?colormap=magma")


@pytest.mark.parametrize(
    "path",
    [
        "packed", "packed?range=250,300&colormap=gray_r", "photograph", "labels", "climate/t2m?slice=1,:,:", "climate/t2m?range=260,290",
        "stack", "stack?slice=2,3,:,:&colormap=turbo", "stack?slice=1,:,:,3", "stack?axes=x,y", "stack?slice=1,1,:,:&scale=sqrt&range=10,3000",
        "stack?slice=1,1,:,:&scale=log&range=10,3000", "ome?isel.z=2", "ome?isel.z=1&channels=1:0080ff:20:200", "ome?slice=1,1,:,:",
    ],
)
def test_the_canvas_of_a_page_is_its_picture(visit, pictures, path):  # noqa: F811
    assert_same(visit, pictures, f"m/{path}")


@pytest.mark.parametrize("path", ["field", "image", "image?slice=1,:,:", "image/1?slice=0,:,:", "image/labels/nuclei", "image/labels/nuclei/0", "sharded", "v2/blosc"])
def test_what_the_demo_shows_is_its_picture(visit, demo, path):
    assert_same(visit, demo, f"demo/{path}")


@pytest.mark.parametrize("opacity", [0.5, 0.9])
def test_labels_lie_over_the_image(visit, demo, opacity):
    image, labels = picture(demo, "demo/image"), picture(demo, "demo/image/labels/nuclei")
    found = canvas(visit, demo, f"demo/image?labels=nuclei&opacity={opacity}", image.shape[:2])
    is_labelled = labels[..., 3] > 0
    assert is_labelled.any() and not is_labelled.all()
    numpy.testing.assert_array_equal(found[~is_labelled], image[~is_labelled])
    mixed = image[is_labelled][:, :3] * (1 - opacity) + labels[is_labelled][:, :3] * opacity
    # A canvas blends with opacities of 8 bits, and may round them and the colours up or down.
    assert numpy.abs(found[is_labelled][:, :3] - mixed).max() <= 2


def test_labels_are_chosen_without_further_requests_for_their_opacity(visit, demo):
    choose = "(([id, value]) => { const field = document.querySelector(id); field.value = value; field.dispatchEvent(new Event('change')); })"
    asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/')).length"
    steps = [
        SHOWN, ["evaluate", f"{choose}(['#labels', 'nuclei'])"], ["pause", 600], ["evaluate", asked],
        ["evaluate", f"{choose}(['#opacity', '0.8'])"], ["pause", 600], ["evaluate", asked],
    ]
    found = visit(f"{demo.base}/view/demo/image", steps=steps)
    assert found["values"][3] == found["values"][6]
    assert found["url"] == "/view/demo/image?labels=nuclei&opacity=0.8"
    assert any(request.startswith("/v1/data/demo/image/labels/nuclei/") for request in found["requests"])


def test_labels_are_a_picture_over_the_picture_without_scripts(visit, demo):
    found = visit(f"{demo.base}/view/demo/image?labels=nuclei&opacity=0.3", scripts=False)
    shown = [request for request in found["requests"] if request.startswith("/v1/image/")]
    assert any(one.startswith("/v1/image/demo/image?") for one in shown), shown
    assert any(one.startswith("/v1/image/demo/image/labels/nuclei?") for one in shown), shown


def vertices(running):
    """The points of the demo."""
    answer = requests.get(f"{running.base}/v1/vectors/demo/points/vertices", timeout=processes.SECONDS)
    return numpy.array(answer.json()["positions"])


@pytest.mark.parametrize(("query", "across", "up"), [("", 0, 1), ("?axes=z,x", 0, 2), ("?axes=x,z", 2, 0)])
def test_every_point_is_drawn_where_it_is(visit, demo, query, across, up):
    points = vertices(demo)
    pixels = """(() => {
        const canvas = document.querySelector("#stage canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return [canvas.width, canvas.height, Array.from(data.filter((_, at) => at % 4 === 3), (one) => (one ? 1 : 0)).join("")];
    })()"""
    found = visit(f"{demo.base}/view/demo/points{query}", steps=[SHOWN, ["pause", 300], ["evaluate", pixels]])
    assert not found["said"] and f"All {len(points)} points." in found["text"].replace("\u202f", "")
    width, height, text = found["values"][-1]
    drawn = numpy.array(list(text), int).reshape(height, width) > 0
    low, high = points.min(0), points.max(0)
    scale = min(width * 0.92 / (high - low)[across], height * 0.92 / (high - low)[up])
    middle = (low + high) / 2
    x = width / 2 + (points[:, across] - middle[across]) * scale
    y = height / 2 - (points[:, up] - middle[up]) * scale
    assert drawn[y.astype(int), x.astype(int)].all()
    # Nothing is drawn where no point is near: each covers less than three pixels.
    near = numpy.zeros_like(drawn)
    for dx in range(-3, 4):
        for dy in range(-3, 4):
            near[(y + dy).astype(int), (x + dx).astype(int)] = True
    assert not drawn[~near].any() and not near.all()


def test_a_part_of_space_can_be_linked_to(visit, demo):
    steps = [SHOWN, ["key", "+"], ["key", "+"], ["pause", 700]]
    first = visit(f"{demo.base}/view/demo/points?axes=z,x&color=&colormap=magma", steps=steps)
    assert "box=" in first["url"] and "axes=z,x" in first["url"]
    again = visit(f"{demo.base}{first['url']}", steps=[SHOWN, ["pause", 700]])
    assert again["url"] == first["url"]
