"""`/v1/batch` is read with what Python has for mails: each part is what its selection is by itself."""

import email
import io
import random

import numpy
import pandas
import pytest
import requests
import zarr

import processes
from processes import SECONDS

SEED = 20261125
SHAPE = (20, 30, 40)


@pytest.fixture(scope="module")
def values():
    rng = numpy.random.default_rng(SEED)
    return {name: rng.integers(0, 250, SHAPE).astype(name) for name in ("uint8", "int32", "float64")}


@pytest.fixture(scope="module")
def running(values, tmp_path_factory):
    folder = tmp_path_factory.mktemp("batches")
    for name, elements in values.items():
        zarr.create_array(folder / name, data=elements, chunks=(7, 8, 9), dimension_names=["z", "y", "x"])
    with processes.zarrd(f"m={folder}") as running:
        yield running


def parts(answer):
    assert answer.status_code == 200, answer.text
    head = f"Content-Type: {answer.headers['Content-Type']}\r\n\r\n".encode()
    return email.message_from_bytes(head + answer.content).get_payload()


def test_each_part_has_the_elements_that_numpy_selects(running, values):
    draw = random.Random(SEED)
    items, wanted = [], []
    for _ in range(200):
        name = draw.choice(sorted(values))
        chosen = tuple(slice(*sorted(draw.sample(range(length + 1), 2))) for length in SHAPE)
        text = ",".join(f"{one.start}:{one.stop}" for one in chosen)
        items.append({"path": name, "slice": text, "format": "npy"})
        wanted.append(values[name][chosen])
    found = parts(requests.post(f"{running.base}/v1/batch/m", json={"items": items}, timeout=SECONDS))
    assert len(found) == len(wanted)
    for item, part, elements in zip(items, found, wanted, strict=True):
        assert part["Status"] == "200" and part.get_content_type() == "application/x-npy", item
        content = part.get_payload(decode=True)
        assert int(part["Content-Length"]) == len(content), item
        numpy.testing.assert_array_equal(numpy.load(io.BytesIO(content)), elements, strict=True)


def test_parts_of_all_formats_and_failures_stand_side_by_side(running, values):
    items = [
        {"path": "int32", "slice": "0,0", "format": "json"},
        {"path": "none"},
        {"path": "uint8", "slice": "3,:,2", "coords": 1},
        {"path": "int32", "slice": "0,0", "format": "json", "if_none_match": ""},
    ]
    tag = parts(requests.post(f"{running.base}/v1/batch/m", json={"items": items[:1]}, timeout=SECONDS))[0]["ETag"]
    items[3]["if_none_match"] = tag
    found = parts(requests.post(f"{running.base}/v1/batch/m", json={"items": items}, timeout=SECONDS))
    assert [part["Status"] for part in found] == ["200", "404", "200", "304"]
    numpy.testing.assert_array_equal(pandas.read_json(io.BytesIO(found[0].get_payload(decode=True)), typ="series"), values["int32"][0, 0])
    assert found[1].get_content_type() == "application/problem+json"
    table = pandas.read_csv(io.BytesIO(found[2].get_payload(decode=True)))
    assert list(table.columns) == ["z", "y", "x", "uint8"]
    numpy.testing.assert_array_equal(table["uint8"], values["uint8"][3, :, 2])
