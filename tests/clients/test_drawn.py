"""What zarr-python writes is read as zarr-python and numpy read it, bit for bit: random arrays, random selections."""

import io
import json

import numpy
import pytest
import requests
import zarr

import processes
from drawn import Drawn, as_array, canonical

ARRAYS = 300
SELECTIONS = 3

# zarr-python says of half of its types and codecs that others may not know them. That is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture(scope="module")
def drawn(folder):
    """A server over the folder, and a session with it."""
    with processes.zarrd(f"drawn={folder}") as running, requests.Session() as session:
        running.session = session
        yield running


@pytest.mark.parametrize("seed", range(ARRAYS))
def test_a_drawn_array_reads_as_zarr_python_and_numpy_read_it(drawn, folder, seed):
    array = Drawn(seed)
    path = folder / str(seed)
    array.write(path)
    whole = as_array(zarr.open_array(path, mode="r")[...], array)
    for selection, slice_ in array.selections(SELECTIONS):
        expected = whole[selection]
        answer = drawn.session.get(drawn.data("drawn", seed), params={"slice": slice_}, timeout=processes.SECONDS)
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.headers["Array-Shape"]) == list(expected.shape), slice_
        assert answer.content == canonical(expected), slice_
        if not array.is_variable:
            query = {"slice": slice_, "format": "npy"}
            answer = drawn.session.get(drawn.data("drawn", seed), params=query, timeout=processes.SECONDS)
            loaded = numpy.load(io.BytesIO(answer.content))
            assert loaded.dtype == expected.dtype.newbyteorder("<")
            assert loaded.shape == expected.shape
            assert loaded.tobytes() == canonical(expected), slice_
