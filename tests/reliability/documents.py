"""S9, long documents: many clients ask for one document that is as long as it may be, in every form that it is shown in.

To make each form takes long, and is done once. The test measures how long other requests wait meanwhile. None may fail.
"""

import asyncio
import http.client
import json
import pathlib
import tempfile
import time

from server import SECONDS, Clients, zarrd

CONNECTIONS = 192
PAUSE = 2
"""Seconds between two answers of one connection: so that what is measured is not the client."""
FORMS = {
    # It is only passed on: what others wait for here, the clients and the machine make them wait for.
    "`/store`, as it is stored": "/store/m/long/zarr.json",
    "`/v1/nodes`": "/v1/nodes/m/long",
    "`/plain`": "/plain/m/long/zarr.json",
    "`/unshard`": "/unshard/m/long/zarr.json",
    "`/rechunk`, v3": "/rechunk/m/auto/raw/long/zarr.json",
    "`/rechunk`, v2": "/rechunk/m/auto/raw/long/.zattrs",
}


def run(long):
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        array(folder / "long", {"a": [{"": 1}] * 510_000})
        array(folder / "small", {})
        with zarrd(f"m={folder}") as server:
            rows.append(("a document of 4 MiB: others without requests for it", latencies(*measured(server, None, 4)[:2])))
            for form, path in FORMS.items():
                health, data, answers = measured(server, path, 60 if long else 8)
                assert answers > CONNECTIONS, f"{form}: {answers} answers to {CONNECTIONS} connections"
                rows.append((
                    f"{CONNECTIONS} connections on a document of 4 MiB through {form}",
                    f"{answers:,} answers, 0 others; {latencies(health, data)}",
                ))
    return rows


def latencies(health, data):
    return f"`/healthz` p99 {health:.0f} ms, a small slice p99 {data:.0f} ms"


def array(folder, attributes):
    """An array whose codecs and data type are spelt in short, so that views have something to spell out."""
    folder.mkdir()
    grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8", "chunk_grid": grid,
        "chunk_key_encoding": "default", "fill_value": 0, "codecs": ["bytes"], "attributes": attributes,
    }
    text = json.dumps(document, separators=(",", ":"))
    assert len(text) <= 4 << 20
    (folder / "zarr.json").write_text(text)
    (folder / "c").mkdir()
    (folder / "c/0").write_bytes(bytes(4))


def measured(server, path, seconds):
    """The slowest hundredth of the answers to others, in milliseconds, and how many answers to those who ask for the path."""
    return asyncio.run(together(server, path, seconds))


async def together(server, path, seconds):
    end = time.monotonic() + seconds
    asking = [ask(server, path, end, n / CONNECTIONS * PAUSE) for n in range(CONNECTIONS if path else 0)]
    victims = asyncio.to_thread(watch, server, end)
    (health, data), *counts = await asyncio.gather(victims, *asking)
    return p99(health), p99(data), sum(counts)


async def ask(server, path, end, first):
    """Asks again and again, over one connection. Returns how often it was answered."""
    await asyncio.sleep(first)
    own = (Clients.ADDRESS, 0)
    reader, writer = await asyncio.open_connection(server.host, server.port, local_addr=own, limit=1 << 20)
    count = 0
    while time.monotonic() < end:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)).lower()
        assert head.startswith(b"http/1.1 200 "), head
        left = int(head.partition(b"content-length: ")[2].split()[0])
        while left:
            part = await asyncio.wait_for(reader.read(left), SECONDS)
            assert part, "the answer broke off"
            left -= len(part)
        count += 1
        await asyncio.sleep(PAUSE)
    writer.close()
    return count


def watch(server, end):
    """How long each answer to another client takes."""
    connection = http.client.HTTPConnection(server.host, server.port, SECONDS)
    took = {"/healthz": [], "/v1/data/m/small?slice=:2": []}
    while time.monotonic() < end:
        for path, times in took.items():
            begun = time.monotonic()
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.read() and answer.status == 200, answer.status
            times.append(1000 * (time.monotonic() - begun))
        time.sleep(0.02)
    connection.close()
    return took.values()


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]
