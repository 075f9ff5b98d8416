"""A PUT of elements that are far longer than memory, into chunks and into shards.

What the server holds at most is compared with what it says it holds at most, with settings for 512 MiB of memory. The PUT has
512 MiB; with `--long` 10 GiB, or as many MiB as `ZARRD_PUT_MIB` has.
"""

import contextlib
import json
import os
import pathlib
import random
import struct
import tempfile
import time

from server import zarrd
from storm import SETTINGS

ROW = 1 << 20
"""Elements of a row, of 4 bytes."""
RUN = 1 << 10
"""Elements in a row that are the same."""
LAYOUTS = {
    "chunks of 4 MiB": {"chunks": [1, ROW]},
    "shards of 64 MiB with chunks of 1 MiB": {"chunks": [1, ROW // 4], "shards": [16, ROW]},
}
READS = 20


def row(number):
    """Elements that say where they are, and are short when compressed."""
    return b"".join(struct.pack("<I", (number << 12) + run) * RUN for run in range(ROW // RUN))


def put(server, rows):
    """Sends all elements, and says how long that took."""
    connection = server.connect()
    connection.timeout = 3600
    with contextlib.closing(connection):
        begun = time.monotonic()
        connection.putrequest("PUT", "/v1/data/m/a?slice=:")
        connection.putheader("content-type", "application/octet-stream")
        connection.putheader("content-length", str(rows * ROW * 4))
        connection.endheaders()
        for number in range(rows):
            connection.send(row(number))
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 204, (answer.status, said)
        return time.monotonic() - begun


def run(long):
    mebibytes = int(os.environ.get("ZARRD_PUT_MIB", 10 << 10 if long else 512))
    rows = mebibytes // (ROW * 4 >> 20)
    found = []
    for name, layout in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder, zarrd("--writable", f"m={pathlib.Path(folder)}", **SETTINGS) as server:
            array = {"shape": [rows, ROW], "data_type": "uint32", **layout}
            with contextlib.closing(server.connect()) as connection:
                connection.request("PUT", "/v1/nodes/m/a", json.dumps(array), {"content-type": "application/json"})
                answer = connection.getresponse()
                assert answer.status == 201, answer.read()
            before = server.resident()
            seconds = put(server, rows)
            most = server.resident("VmHWM")
            assert most <= server.bound + 2 * server.connection, f"{most:,} of {server.bound:,} bytes"
            dice = random.Random(rows)
            for number in [0, rows - 1, *(dice.randrange(rows) for _ in range(READS))]:
                status, stored = server.get(f"/v1/data/m/a?slice={number}&format=bytes")
                assert status == 200 and stored == row(number), f"row {number}: {status}"
            measured = f"{before >> 20} MiB before, {most >> 20} MiB at most, of {server.bound >> 20}; {rows * ROW * 4 / seconds / 1e6:,.0f} MB/s"
            found.append((f"a PUT of {mebibytes:,} MiB into {name}", measured))
    return found
