"""Clients of Zarr write through `PUT` and `DELETE` of writable mounts, and everyone reads what they wrote."""

import http.client
import io
import threading
import urllib.parse

import numpy
import pytest
import requests
import zarr

import arrays
import clients
from processes import SECONDS


def data_of(server, mount, path):
    answer = requests.get(server.data(mount, path), params={"format": "npy"}, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    return numpy.load(io.BytesIO(answer.content))


@pytest.mark.parametrize("name", ["v3_sharded", "v3_zstd_missing_nan", "v3_scalar", "v2_blosc", "v2_fortran_slashes"])
@pytest.mark.client("zarr-python + obstore", "write")
def test_an_array_written_through_obstore_reads_equal(server, writable, name):
    array = arrays.ARRAYS[name]
    # Arrays alone: what zarr-python does about the groups above an array, obstore refuses to do over HTTP.
    array.write(clients.obstore_store(server.store(writable, f"obstore/{name}")))
    for read in clients.READERS.values():
        clients.assert_same(read(server.store(writable), f"obstore/{name}", array.zarr_format), array.values)
    clients.assert_same(data_of(server, writable, f"obstore/{name}"), array.values)


@pytest.mark.client("zarr-python + fsspec", "write")
def test_an_array_written_through_fsspec_reads_equal(server, writable):
    values = arrays.values("int16", 30, 20)
    url = server.store(writable, "fsspec/array")
    zarr.create_array(url, data=values, chunks=(8, 8))
    clients.assert_same(zarr.open_array(url, mode="r")[...], values)
    clients.assert_same(data_of(server, writable, "fsspec/array"), values)


@pytest.mark.client("zarr-python + obstore", "write")
def test_overwritten_and_erased_chunks_are_visible_at_once(server, writable):
    store = clients.obstore_store(server.store(writable, "changing"))
    values = arrays.values("uint8", 40, 40)
    array = zarr.create_array(store, data=values, chunks=(20, 20), fill_value=0)
    clients.assert_same(data_of(server, writable, "changing"), values)

    # As many bytes as before, at once: neither size nor time distinguishes them.
    values[:20, :20] = values[:20, :20].T
    array[:20, :20] = values[:20, :20]
    clients.assert_same(data_of(server, writable, "changing"), values)

    # A chunk of nothing but the fill value is one that zarr-python deletes.
    chunk = server.store(writable, "changing/c/1/1")
    assert requests.head(chunk, timeout=SECONDS).status_code == 200
    values[20:, 20:] = 0
    array[20:, 20:] = 0
    assert requests.head(chunk, timeout=SECONDS).status_code == 404
    clients.assert_same(data_of(server, writable, "changing"), values)
    clients.assert_same(zarr.open_array(store, mode="r")[...], values)

    array.resize((50, 30))
    values = numpy.pad(values[:, :30], ((0, 10), (0, 0)))
    clients.assert_same(data_of(server, writable, "changing"), values)


def test_concurrent_creations_have_one_winner(server, writable):
    for turn in range(5):
        url = urllib.parse.urlsplit(server.store(writable, f"race/{turn}"))
        bodies = [bytes([racer]) * 100_000 for racer in range(16)]
        statuses = race(url, bodies, {"If-None-Match": "*"})
        assert sorted(statuses) == [201] + [412] * 15
        assert requests.get(url.geturl(), timeout=SECONDS).content == bodies[statuses.index(201)]


def test_concurrent_updates_of_one_version_have_one_winner(server, writable):
    url = urllib.parse.urlsplit(server.store(writable, "race/update"))
    requests.put(url.geturl(), data=b"first", timeout=SECONDS).raise_for_status()
    for turn in range(5):
        etag = requests.head(url.geturl(), timeout=SECONDS).headers["ETag"]
        # No writer repeats the stored bytes: where versions are digests of the bytes, as in S3, that would not change the version.
        bodies = [bytes([turn, racer]) * 500 for racer in range(16)]
        statuses = race(url, bodies, {"If-Match": etag})
        assert sorted(statuses) == [204] + [412] * 15
        assert requests.get(url.geturl(), timeout=SECONDS).content == bodies[statuses.index(204)]


def race(url, bodies, headers):
    """PUTs every body at the same time, each over a connection of its own; the statuses."""
    start = threading.Barrier(len(bodies))
    statuses = [None] * len(bodies)

    def put(racer):
        connection = http.client.HTTPConnection(url.netloc, timeout=SECONDS)
        connection.connect()
        start.wait(SECONDS)
        connection.request("PUT", url.path, bodies[racer], headers)
        statuses[racer] = connection.getresponse().status
        connection.close()

    threads = [threading.Thread(target=put, args=[racer]) for racer in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses
