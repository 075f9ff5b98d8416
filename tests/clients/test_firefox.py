"""The main pages in Firefox: they say no error, load nothing from other origins, and show what they show in Chromium."""

import numpy
import pytest

import firefox
import processes
from test_view_pixels import ELEMENTS, picture

READY = """new Promise((resolve) => {
    const check = () => document.documentElement.dataset.ready && (%s) ? resolve(true) : setTimeout(check, 50);
    check();
})"""
"""Waits until the page is ready, and something else."""

FRAMES = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(true))))"
"""Waits until the browser has drawn what was there."""


@pytest.fixture(scope="module")
def demo():
    with processes.zarrd("--demo") as running:
        yield running


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    with firefox.running(tmp_path_factory.mktemp("firefox")) as visit:
        yield visit


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "document.querySelector('.cards')"),
        ("/view/demo/", "document.querySelector('table.arrays')"),
        ("/view/demo/field", "document.querySelector('canvas[data-ready]')"),
        ("/view/demo/field?tab=line", "document.querySelector('#plot svg')"),
        ("/view/demo/field?tab=table", "document.querySelector('#table td')"),
        ("/view/demo/field?tab=hist", "document.querySelector('#histogram svg')"),
        ("/view/demo/field?tab=chunks", "document.querySelector('main table')"),
        ("/view/demo/field?tab=meta", "document.querySelector('.attributes')"),
        ("/view/demo/field?tab=use", "document.querySelector('.snippet button')"),
        ("/view/demo/points", "document.querySelector('canvas')"),
        ("/view/demo/image?labels=nuclei", "document.querySelector('canvas[data-ready]')"),
        ("/view/demo/feild", "document.body.textContent.includes('did you mean')"),
    ],
)
def test_a_page_says_no_error_and_loads_nothing_from_other_origins(visit, demo, path, shown):
    found = visit(f"{demo.base}{path}", READY % shown)
    assert found["values"] == [True]
    # Firefox says in its console that the page itself is a 404.
    assert [text for text in found["said"] if "404" not in text] == []
    assert all(url.startswith((f"{demo.base}/", "blob:", "data:")) for url in found["requests"]), found["requests"]


@pytest.mark.parametrize("path", ["field", "image", "image/labels/nuclei", "sharded"])
def test_the_canvas_of_a_page_is_its_picture(visit, demo, path):
    expected = picture(demo, f"demo/{path}")
    height, width = expected.shape[:2]
    shown = READY % f"document.querySelector('#stage canvas[data-ready]') && {ELEMENTS}({width}, {height}).some((one) => one)"
    found = visit(f"{demo.base}/view/demo/{path}", shown, FRAMES, f"{ELEMENTS}({width}, {height})")
    numpy.testing.assert_array_equal(numpy.array(found["values"][2], "uint8").reshape(expected.shape), expected)
