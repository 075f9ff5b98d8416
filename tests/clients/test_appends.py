"""What is appended by `POST /v1/data?append=` is read by zarr-python, xarray and tensorstore, whole and once."""

import concurrent.futures
import io
import uuid

import numpy
import pytest
import requests
import xarray
import zarr

import clients
from processes import SECONDS

CASES = {
    "v3": {"zarr_format": 3, "chunks": (4, 3)},
    "v3_sharded": {"zarr_format": 3, "chunks": (2, 3), "shards": (8, 6)},
    "v2": {"zarr_format": 2, "chunks": (4, 3)},
}


def append(server, mount, path, elements, key=None, **params):
    body = io.BytesIO()
    numpy.save(body, elements)
    headers = {"Content-Type": "application/x-npy", "Idempotency-Key": key or str(uuid.uuid4())}
    return requests.post(
        server.data(mount, path), params=params, data=body.getvalue(), headers=headers, timeout=SECONDS
    )


def append_until_done(server, mount, path, elements, **params):
    """As a client does that is asked to come back."""
    key = str(uuid.uuid4())
    for _ in range(100):
        answer = append(server, mount, path, elements, key, **params)
        if answer.status_code != 503:
            break
    answer.raise_for_status()
    return answer.json()


@pytest.mark.parametrize("name", CASES)
def test_appended_elements_equal_those_of_numpy(server, writable, name):
    path = f"appends/{name}"
    store = clients.obstore_store(server.store(writable, path))
    zarr.create_array(store, shape=(0, 6), dtype="float64", fill_value=-1, **CASES[name])
    random = numpy.random.default_rng(3)
    expected = numpy.zeros((0, 6))
    for _ in range(8):
        rows = random.random((int(random.integers(1, 7)), 6))
        answer = append(server, writable, path, rows, append=0, at=len(expected))
        assert answer.status_code == 200, answer.text
        expected = numpy.concatenate([expected, rows])
        assert answer.json()["shape"] == list(expected.shape)
        numpy.testing.assert_array_equal(zarr.open_array(store, mode="r")[:], expected)
    # And along the other dimension.
    columns = random.random((len(expected), 2))
    assert append(server, writable, path, columns, append=1).status_code == 200
    expected = numpy.concatenate([expected, columns], axis=1)
    numpy.testing.assert_array_equal(zarr.open_array(store, mode="r")[:], expected)


def test_of_many_clients_each_frame_is_there_once(server, writable):
    path = "appends/frames"
    store = clients.obstore_store(server.store(writable, path))
    zarr.create_array(store, shape=(0, 8, 8), dtype="uint16", chunks=(1, 8, 8), shards=(16, 8, 8), fill_value=0)

    def frame(number):
        return append_until_done(server, writable, path, numpy.full((8, 8), number, "uint16"), append=0)["start"]

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        places = list(pool.map(frame, range(1, 61)))
    frames = zarr.open_array(store, mode="r")[:]
    assert sorted(places) == list(range(60))
    for number, place in enumerate(places, 1):
        assert (frames[place] == number).all()


def test_xarray_sees_the_time_axis_that_grew(server, writable):
    path = "appends/series"
    options = {"anon": True, "endpoint_url": f"{server.base}/s3"}
    data = xarray.Dataset(
        {"t": (("time", "x"), numpy.arange(6, dtype="float32").reshape(2, 3))}, coords={"x": [10, 20, 30]}
    )
    data.to_zarr(f"s3://{writable}/{path}", mode="w", zarr_format=3, consolidated=True, storage_options=options)
    answer = append(server, writable, f"{path}/t", numpy.array([[7, 8, 9]], "float32"), append="time")
    assert answer.json() == {"start": 2, "stop": 3, "shape": [3, 3]}
    opened = xarray.open_zarr(clients.obstore_store(server.store(writable, path)), consolidated=True)
    numpy.testing.assert_array_equal(opened.t.values, [[0, 1, 2], [3, 4, 5], [7, 8, 9]])
