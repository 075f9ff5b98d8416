"""Elements that `PUT /v1/data` writes are read equal by numpy's rules, zarr-python and tensorstore; none of many is lost."""

import concurrent.futures
import io

import numpy
import pytest
import requests
import tensorstore
import zarr

import clients
from processes import SECONDS

# One case for each way in which chunks are encoded: the format, the data type, and how they are stored.
CASES = {
    "v3_plain": {"zarr_format": 3, "dtype": "float32", "compressors": None},
    "v3_zstd": {"zarr_format": 3, "dtype": "int64"},
    "v3_sharded": {"zarr_format": 3, "dtype": "uint16", "shards": (12, 20)},
    "v3_gzip_bool": {"zarr_format": 3, "dtype": "bool", "compressors": zarr.codecs.GzipCodec()},
    "v2_blosc": {"zarr_format": 2, "dtype": "complex64"},
    "v2_fortran_big": {"zarr_format": 2, "dtype": ">i4", "order": "F"},
}


def put(server, mount, path, elements, **params):
    body = io.BytesIO()
    numpy.save(body, elements)
    headers = {"Content-Type": "application/x-npy"}
    url = server.data(mount, path)
    return requests.put(url, params=params, data=body.getvalue(), headers=headers, timeout=SECONDS)


def create(server, mount, path, shape=(25, 33), chunks=(4, 5), **options):
    store = clients.obstore_store(server.store(mount, path))
    return zarr.create_array(store, shape=shape, chunks=chunks, fill_value=0, **options)


def tensorstore_of(url, zarr_format):
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    store = tensorstore.open({"driver": driver, "kvstore": {"driver": "http", "base_url": url + "/"}}, open=True)
    return store.result().read().result()


@pytest.mark.parametrize("name", CASES)
def test_random_writes_equal_those_of_numpy(server, writable, name):
    case = CASES[name]
    path = f"elements/{name}"
    array = create(server, writable, path, **case)
    random = numpy.random.default_rng(7)
    expected = numpy.zeros(array.shape, array.dtype)
    for _ in range(12):
        selection = []
        for length in array.shape:
            start, stop = sorted(random.integers(0, length + 1, 2).tolist())
            selection.append(slice(start, stop, int(random.integers(1, 4))))
        if random.integers(4) == 0:
            selection[0] = int(random.integers(array.shape[0]))
        shape = expected[tuple(selection)].shape
        elements = random.integers(0, 100, shape).astype(array.dtype)
        text = ",".join(
            str(part) if isinstance(part, int) else f"{part.start}:{part.stop}:{part.step}" for part in selection
        )
        answer = put(server, writable, path, elements, slice=text)
        assert answer.status_code == 204, answer.text
        expected[tuple(selection)] = elements
        read = requests.get(server.data(writable, path), params={"format": "npy"}, timeout=SECONDS)
        clients.assert_same(numpy.load(io.BytesIO(read.content)), expected)
    store = clients.obstore_store(server.store(writable, path))
    clients.assert_same(zarr.open_array(store, mode="r")[...], expected)
    numpy.testing.assert_array_equal(tensorstore_of(server.store(writable, path), case["zarr_format"]), expected)


def test_no_element_of_a_shard_is_lost_among_many_writers(server, writable):
    path = "elements/shared"
    create(server, writable, path, (16, 16), (4, 4), shards=(16, 16), dtype="uint16", zarr_format=3)
    url = server.data(writable, path)

    def write(number):
        params = {"slice": f"{number // 16},{number % 16}"}
        headers = {"Content-Type": "application/json"}
        answer = requests.put(url, params=params, data=str(number + 1), headers=headers, timeout=SECONDS)
        return answer.status_code

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(write, range(256))) == {204}
    store = clients.obstore_store(server.store(writable, path))
    read = zarr.open_array(store, mode="r")[...]
    numpy.testing.assert_array_equal(read, numpy.arange(1, 257, dtype="uint16").reshape(16, 16))


def test_an_array_of_another_type_is_named_and_cast_only_where_nothing_is_lost(server, writable):
    path = "elements/typed"
    create(server, writable, path, (3,), (3,), dtype="float64", zarr_format=3)
    wrong = put(server, writable, path, numpy.arange(3, dtype="float32"))
    assert (wrong.status_code, wrong.json()["code"]) == (400, "data-type-mismatch")
    assert put(server, writable, path, numpy.arange(3, dtype="float32"), cast="safe").status_code == 204
    lossy = put(server, writable, path, numpy.array([1, 2, 2**53 + 1]), cast="safe")
    assert (lossy.status_code, lossy.json()["written"]) == (400, False)
    read = requests.get(server.data(writable, path), params={"format": "json"}, timeout=SECONDS)
    assert read.json() == [0, 1, 2]
