"""Elements that `PUT /v1/data` writes are read equal by numpy's rules, zarr-python and tensorstore; none of many is lost."""

import concurrent.futures
import io

import numpy
import pyarrow
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


ARROW = "application/vnd.apache.arrow.stream"
ARROW_TYPES = {
    "float32": lambda random: random.normal(size=(9, 4)).astype("float32"),
    "int64": lambda random: random.integers(-100, 100, (9, 4)),
    "bool": lambda random: random.integers(0, 2, (9, 4)).astype(bool),
    "datetime64[s]": lambda random: random.integers(0, 1 << 30, (9, 4)).astype("datetime64[s]"),
    "complex64": lambda random: random.normal(size=(9, 8)).astype("float32").view("complex64"),
}


def put_arrow(server, mount, path, table, **options):
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as stream:
        stream.write_table(table, max_chunksize=2)
    return requests.put(server.data(mount, path), data=sink.getvalue(), headers={"Content-Type": ARROW}, timeout=SECONDS)


@pytest.mark.parametrize("dtype", ARROW_TYPES)
def test_tables_of_pyarrow_are_written_as_they_were_read(server, writable, dtype):
    expected = ARROW_TYPES[dtype](numpy.random.default_rng(3))
    if dtype.startswith("datetime64"):
        expected[2, 1] = "NaT"
    arrays = [create(server, writable, f"arrow/{dtype}/{copy}", (9, 4), (2, 3), dtype=dtype) for copy in ("from", "to")]
    assert put(server, writable, f"arrow/{dtype}/from", expected).status_code == 204
    content = requests.get(server.data(writable, f"arrow/{dtype}/from"), params={"format": "arrow"}, timeout=SECONDS).content
    with pyarrow.ipc.open_stream(content) as stream:
        table = stream.read_all()
    # What pyarrow writes of it has other batches than the response.
    answer = put_arrow(server, writable, f"arrow/{dtype}/to", table)
    assert answer.status_code == 204, answer.text
    numpy.testing.assert_array_equal(arrays[1][:], expected)


def test_a_table_that_pyarrow_makes_is_written(server, writable):
    array = create(server, writable, "arrow/made", (6,), (4,), dtype="int32")
    answer = put_arrow(server, writable, "arrow/made", pyarrow.table({"any": pyarrow.array(range(8), "int32")[1:7]}))
    assert answer.status_code == 204, answer.text
    numpy.testing.assert_array_equal(array[:], numpy.arange(1, 7))
    texts = server.data(writable, "arrow/made")
    for table, options, said in [
        (pyarrow.table({"any": pyarrow.array(["a"] * 6).dictionary_encode()}), {}, "type"),
        (pyarrow.table({"any": pyarrow.array([1, None, 3, 4, 5, 6], "int32")}), {}, "is null"),
        (pyarrow.table({"any": pyarrow.array(range(6), "int64")}), {}, "type"),
        (pyarrow.table({"any": pyarrow.array([[0]] * 6)}), {}, "type"),
        (pyarrow.table({"any": pyarrow.array([0] * 6, "int32")}), {"compression": "zstd"}, "compressed"),
        (pyarrow.table({"one": pyarrow.array(range(6), "int32"), "two": pyarrow.array(range(6), "int32")}), {}, "2 columns"),
        (pyarrow.table({"any": pyarrow.array(range(7), "int32")}), {}, "shape"),
    ]:
        answer = put_arrow(server, writable, "arrow/made", table, **options)
        assert answer.status_code == 400 and said in answer.json()["detail"], answer.text
        assert answer.json()["written"] is False
    numpy.testing.assert_array_equal(array[:], numpy.arange(1, 7), texts)
