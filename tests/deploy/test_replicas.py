"""Three replicas behind nginx over one store: one cache in parts, no failures while they come, go and are killed, and
what one writes the others see."""

import json
import os
import random
import struct
import threading
import time

import pytest
import requests
from load import load
from replicas import BUCKET, SECONDS, nginx, replicas

COUNT = 3
ARRAYS = 4
CHUNKS = 12
SIDE = 64
"""The edge of a chunk, which has two dimensions and elements of two bytes."""
VALUE = bytes(range(256)) * 256


def chunk(array, n):
    """The elements of a chunk: like those of no other."""
    return b"".join(struct.pack("<H", (array * 5003 + n * 409 + at * 7) % 65521) for at in range(SIDE * SIDE))


@pytest.fixture(scope="session")
def answers(endpoint):
    """Fills the bucket; every answer that is asked for, by its path."""
    session = requests.Session()

    def store(key, value):
        session.put(f"{endpoint}/{BUCKET}/{key}", data=value, timeout=SECONDS).raise_for_status()

    found = {}
    for array in range(ARRAYS):
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [SIDE * CHUNKS, SIDE],
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }
        store(f"a{array}/zarr.json", json.dumps(document).encode())
        for n in range(CHUNKS):
            store(f"a{array}/c/{n}/0", chunk(array, n))
            found[f"/v1/chunk/data/a{array}/c/{n}/0"] = chunk(array, n)
            found[f"/store/data/a{array}/c/{n}/0"] = chunk(array, n)
        whole = b"".join(chunk(array, n) for n in range(CHUNKS))
        row = SIDE * 2
        found[f"/v1/data/data/a{array}?slice=10:200"] = whole[10 * row : 200 * row]
    for n in range(4):
        store(f"values/{n}", VALUE)
        found[f"/store/data/values/{n}"] = VALUE
    # A name that must reach the replicas as it was sent.
    store("values/%252e", b"twice escaped")
    found["/store/data/values/%252e"] = b"twice escaped"
    return found


def misses(base, times):
    """Requests every chunk `times` times, in random order; returns the number of cache misses."""
    count = 0
    chunks = [(array, n) for array in range(ARRAYS) for n in range(CHUNKS)]
    with requests.Session() as session:
        for turn in range(times):
            for array, n in random.Random(turn).sample(chunks, len(chunks)):
                answer = session.get(f"{base}/v1/chunk/data/a{array}/c/{n}/0", timeout=SECONDS)
                assert answer.content == chunk(array, n)
                count += answer.headers["Cache-Status"] != "zarrd; hit"
    return count


def test_the_caches_of_three_are_one(endpoint, answers, tmp_path, record):
    chunks, times = ARRAYS * CHUNKS, 4
    found = {}
    for name, count, hashed in [("one", 1, True), ("hashed", COUNT, True), ("in_turn", COUNT, False)]:
        # What is prefetched would be a hit too.
        settings = {"READ__PREFETCH_SIZE": "0"}
        with replicas(count, endpoint, tmp_path, **settings) as each, nginx(tmp_path / name, each, hashed) as base:
            found[name] = misses(base, times)
            alone = [misses(replica.base, 1) for replica in each]
            if name == "hashed":
                # Each has a part, and all parts together are the whole, once.
                assert sum(chunks - missed for missed in alone) == chunks
                assert all(0 < missed < chunks for missed in alone), alone
    assert found["one"] == found["hashed"] == chunks, found
    rates = {name: f"{100 * (1 - missed / chunks / times):.0f} %" for name, missed in found.items()}
    record(
        "cache hits of one replica, of three hashed, of three in turn",
        f"{rates['one']}, {rates['hashed']}, {rates['in_turn']} ({chunks} chunks, {times} times each)",
    )
    assert found["in_turn"] > chunks


def test_three_cache_more_than_one(endpoint, answers, tmp_path, record):
    """Each may cache half of all chunks."""
    bound = str(ARRAYS * CHUNKS * SIDE * SIDE * 2 // 2)
    settings = {"CACHE__DECODED_SIZE": bound, "CACHE__VALUE_SIZE": "0", "READ__PREFETCH_SIZE": "0"}
    rates = {}
    for name, count in [("one", 1), ("hashed", COUNT)]:
        with replicas(count, endpoint, tmp_path, **settings) as each, nginx(tmp_path / name, each) as base:
            misses(base, 2)
            rates[name] = 1 - misses(base, 2) / (2 * ARRAYS * CHUNKS)
    record("cache hits where one can cache half", f"one {rates['one']:.0%}, three {rates['hashed']:.0%}")
    assert rates["hashed"] > rates["one"]


def test_a_rolling_restart_fails_no_request(endpoint, answers, tmp_path, record):
    rounds = max(1, int(os.environ.get("ZARRD_RESTARTS", 6)) // COUNT)
    with replicas(COUNT, endpoint, tmp_path) as each, nginx(tmp_path / "nginx", each) as base:
        with load(base, answers) as running:
            for _ in range(rounds):
                for replica in each:
                    before = running.counts["reads"]
                    replica.stop()
                    replica.start()
                    while running.counts["reads"] < before + 20:
                        time.sleep(0.01)
        figures = f"{rounds * COUNT} restarts, {running.counts}, {len(running.failed)} failed"
        record("rolling restart of three behind nginx", figures)
        assert not running.failed, running.failed[:5]
        # No replica was killed: every write was answered.
        assert running.counts["unknown"] == 0 < running.counts["writes"]


def test_a_killed_replica_fails_no_request(endpoint, answers, tmp_path, record):
    with replicas(COUNT, endpoint, tmp_path) as each, nginx(tmp_path / "nginx", each) as base:
        with load(base, answers) as running:
            for replica in each * 2:
                before = running.counts["reads"]
                while running.counts["reads"] < before + 20:
                    time.sleep(0.01)
                replica.kill()
                before = running.counts["reads"]
                while running.counts["reads"] < before + 40:
                    time.sleep(0.01)
                replica.start()
        record("replicas killed behind nginx", f"{2 * COUNT} kills, {running.counts}, {len(running.failed)} failed")
        assert not running.failed, running.failed[:5]
        assert running.counts["writes"] > 0


def test_what_one_writes_all_see(endpoint, tmp_path, record):
    late = []
    with replicas(COUNT, endpoint, tmp_path) as each:
        for n in range(12):
            writer = each[n % COUNT]
            value = f"the {n}th".encode() * 1000
            put = requests.put(f"{writer.base}/store/data/seen", data=value, timeout=SECONDS)
            assert put.status_code in (201, 204)
            for replica in each:
                answer = requests.get(f"{replica.base}/store/data/seen", timeout=SECONDS)
                assert answer.content == value and answer.headers["ETag"] == put.headers["ETag"]

        key, path = "a/c/0/0", "/v1/chunk/slow/a/c/0/0"
        document = requests.get(f"{endpoint}/{BUCKET}/a0/zarr.json", timeout=SECONDS).content
        requests.put(f"{each[0].base}/store/slow/a/zarr.json", data=document, timeout=SECONDS).raise_for_status()
        for n in range(3):
            value = chunk(9, n)
            for replica in each:
                requests.get(replica.base + path, timeout=SECONDS)
            put = requests.put(f"{each[n].base}/store/slow/{key}", data=value, timeout=SECONDS)
            assert put.status_code in (201, 204)
            written = time.monotonic()
            # By its writer at once.
            assert requests.get(each[n].base + path, timeout=SECONDS).content == value
            old = set(range(COUNT)) - {n}
            while old:
                begun = time.monotonic()
                for other in list(old):
                    if requests.get(each[other].base + path, timeout=SECONDS).content == value:
                        old.remove(other)
                        late.append(begun - written)
                    else:
                        # What was asked for when the time was over is the new value.
                        assert begun - written < 2, f"old after {begun - written} s"
                time.sleep(0.02)
    record("writes seen by the other replicas", f"at once under `always`; after at most {max(late):.2f} s under `ttl:2s`")


def test_of_all_who_create_a_key_through_any_replica_one_does(endpoint, tmp_path, record):
    rounds = 20
    with replicas(COUNT, endpoint, tmp_path) as each:
        for n in range(rounds):
            statuses = []

            def create(base):
                headers = {"If-None-Match": "*"}
                url = f"{base}/store/data/created/{n}"
                statuses.append(requests.put(url, data=base.encode(), headers=headers, timeout=SECONDS).status_code)

            threads = [threading.Thread(target=create, args=(replica.base,)) for replica in each * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(statuses) == [201] + [412] * (2 * COUNT - 1), statuses
    record("races to create a key through three replicas", f"{rounds}, one winner in each")


def test_nginx_passes_on_ranges_conditions_and_writes_under_conditions(endpoint, answers, tmp_path):
    with replicas(COUNT, endpoint, tmp_path) as each, nginx(tmp_path / "nginx", each) as base:
        url = f"{base}/store/data/values/0"
        part = requests.get(url, headers={"Range": "bytes=-7"}, timeout=SECONDS)
        assert (part.status_code, part.content) == (206, VALUE[-7:])
        assert part.headers["Content-Range"] == f"bytes {len(VALUE) - 7}-{len(VALUE) - 1}/{len(VALUE)}"
        same = requests.get(url, headers={"If-None-Match": part.headers["ETag"]}, timeout=SECONDS)
        assert same.status_code == 304
        other = f"{base}/store/data/conditional/%25"
        headers = {"If-None-Match": "*"}
        first = requests.put(other, data=b"1", headers=headers, timeout=SECONDS)
        again = requests.put(other, data=b"2", headers=headers, timeout=SECONDS)
        assert (first.status_code, again.status_code) == (201, 412)
        headers = {"If-Match": first.headers["ETag"]}
        assert requests.put(other, data=b"3", headers=headers, timeout=SECONDS).status_code == 204
        assert requests.get(f"{each[0].base}/store/data/conditional/%25", timeout=SECONDS).content == b"3"
