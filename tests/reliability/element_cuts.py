"""Cuts of power and kills of the server in the middle of element writes to a directory.

The writers are those of `elements`: each has runs of elements in shards that all of them share, so that most writes are merged
with what others write. After each cut or kill, each run is as it was acknowledged last, or as the write in flight would have it.
The disk and its cuts are those of `cuts`.
"""

import contextlib
import json
import pathlib
import random
import subprocess
import tempfile
import threading
import time

from cuts import DISK_BYTES, cut, mount
from elements import ARRAY, RUN, Client
from server import zarrd

WRITERS = 8


def run(long):
    rows = []
    for what, count, breaks in [("power cuts", 200 if long else 4, of_power), ("kills", 500 if long else 8, of_the_server)]:
        writers = Writers()
        breaks(writers, count)
        assert not writers.faults(), f"{what}: {writers.faults()[:5]}"
        total = writers.count("acknowledged")
        assert total > count, f"{what}: {total} writes acknowledged: this proves nothing"
        rows.append((f"{what} in the middle of element writes", f"{count}; {total:,} writes acknowledged: 0 lost, 0 torn"))
    return rows


def of_power(writers, count):
    with tempfile.TemporaryDirectory() as folder:
        disk, mounted = pathlib.Path(folder) / "disk", pathlib.Path(folder) / "mounted"
        mounted.mkdir()
        with open(disk, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
        for _ in range(count):
            with mount(disk, mounted), served(mounted / "root") as server, writers.writing(server):
                cut(mounted)
                server.kill()
        with mount(disk, mounted), served(mounted / "root") as server:
            writers.check(server)


def of_the_server(writers, count):
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            with served(pathlib.Path(folder)) as server, writers.writing(server):
                server.kill()
        with served(pathlib.Path(folder)) as server:
            writers.check(server)


def served(root):
    root.mkdir(exist_ok=True)
    return zarrd(f"m={root}", "--writable", MOUNTS__M__OPTIONS__DURABILITY="fsync")


class Writers:
    """Clients of one server after another."""

    def __init__(self):
        self.servers, self.left = [], 0
        self.clients = [Client(number, self, self) for number in range(WRITERS)]

    def take(self):
        """Whether there is still work."""
        return self.left > 0

    @contextlib.contextmanager
    def writing(self, server):
        """Checks what the server before has left; the clients write until the block begins, and until its end."""
        if self.servers:
            self.check(server)
        else:
            make(server)
        self.servers, self.left = [server], 1
        for client in self.clients:
            client.thread = threading.Thread(target=client.write)
            client.thread.start()
        time.sleep(random.uniform(0.1, 0.5))
        try:
            yield
        finally:
            self.left = 0
            for client in self.clients:
                client.thread.join()
                client.connections.clear()

    def check(self, server):
        status, stored = server.get("/v1/data/m/a?format=bytes")
        assert status == 200, (status, stored)
        for client in self.clients:
            for owned in client.runs:
                client.check(owned, stored[owned.start * 8 : (owned.start + RUN) * 8])
                # Nothing of the server before arrives any more.
                owned.unknown.clear()

    def faults(self):
        return [fault for client in self.clients for fault in client.faults]

    def count(self, outcome):
        return sum(client.counts[outcome] for client in self.clients)


def make(server):
    with contextlib.closing(server.connect()) as connection:
        connection.request("PUT", "/v1/nodes/m/a", json.dumps(ARRAY), {"content-type": "application/json"})
        assert connection.getresponse().status == 201
