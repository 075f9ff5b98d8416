"""S7, a storm in a small control group: bombs, clients that hardly read and far too much work at once, in 512 MiB of memory.

Each valid request gets its bytes or a refusal with `Retry-After`. Nothing is killed, and the server takes no more memory
than it says at its start.
"""

import contextlib
import os
import pathlib
import socket
import tempfile
import threading
import time

import data
from server import SECONDS, clients, mib, zarrd

LIMIT_BYTES = 512 << 20
CONNECTIONS = 800
SIPPERS = 64
SIP_BYTES = 4 << 10
BOMBERS = 4
BOMBERS_ADDRESS = "127.0.0.3"
"""So that they do not have to share with those who hardly read."""
SETTINGS = {
    "SERVER__MAX_CONNECTIONS": CONNECTIONS,
    "CACHE__DECODED_SIZE": 32 << 20,
    "CACHE__INDEX_SIZE": 4 << 20,
    "CACHE__NODE_SIZE": 4 << 20,
    "CACHE__VALUE_SIZE": 8 << 20,
    "CACHE__ENCODED_SIZE": 8 << 20,
    "CACHE__ZIP_DIRECTORY_SIZE": 1 << 20,
    "CACHE__REFERENCES_SIZE": 1 << 20,
    "HTTP__INFLIGHT_SIZE": 64 << 20,
    "FETCH__INFLIGHT_SIZE": 48 << 20,
    "READ__SEGMENT_SIZE": 2 << 20,
}


def run(long):
    seconds = 600 if long else 20
    with tempfile.TemporaryDirectory() as name, cgroup(LIMIT_BYTES) as (enter, killed):
        folder = pathlib.Path(name)
        answers = data.volume(folder, "volume", 24)
        bombs = data.bombs(folder)
        data.write(folder, "value", data.VALUE)
        with zarrd(f"m={folder}", before=enter, **SETTINGS) as server:
            bound = server.bound + CONNECTIONS * server.connection
            assert bound <= LIMIT_BYTES, f"it says that it takes {mib(bound)}"
            over = threading.Event()
            counts = {"sips": 0} | dict.fromkeys(bombs, 0)
            wrong = []
            threads = [threading.Thread(target=sip, args=(server, n, over, counts)) for n in range(SIPPERS)]
            arguments = (server, bombs, over, counts, wrong)
            threads += [threading.Thread(target=bomb, args=(n, *arguments)) for n in range(BOMBERS)]
            with clients(server, answers, 16, also=[503]) as asked:
                for thread in threads:
                    thread.start()
                time.sleep(seconds)
                over.set()
                for thread in threads:
                    thread.join()
            peak = server.resident("VmHWM")
            # It still answers, and rightly.
            for path, expected in list(answers.items())[:4]:
                assert server.get(path) == (200, expected), path
            assert server.process.poll() is None and killed() == 0
        assert not asked.failed and not wrong, (asked.failed[:3], wrong[:3])
        assert all(counts.values()) and asked.seconds, counts
        assert peak <= bound, f"{mib(peak)} of {mib(bound)}"
        return [
            (
                f"storm of {seconds} s in a cgroup of 512 MiB",
                f"{len(asked.seconds):,} answers checked byte for byte, 0 wrong, {asked.refused:,} refused with `Retry-After`; "
                f"{SIPPERS} slow readers; 0 killed for memory; RSS {mib(peak)} at most of {mib(bound)} said",
            ),
            (
                "decode bombs tried / aborts",
                f"{sum(counts[path] for path in bombs):,} of {len(bombs)} kinds (1 GiB each, or 2^46 bytes claimed) / 0",
            ),
        ]


def bomb(n, server, paths, over, counts, wrong):
    while not over.is_set():
        n += 1
        path = paths[n % len(paths)]
        try:
            status, body = server.get(path, BOMBERS_ADDRESS)
        except OSError as error:
            wrong.append(f"{path}: {error!r}")
            continue
        # Refused as corrupt data, or for lack of memory.
        if status not in (500, 503) or status == 500 and b"corrupt-data" not in body:
            wrong.append(f"{path}: {status} {body[:200]}")
        counts[path] += status == 500


def sip(server, n, over, counts):
    """Reads long answers slowly until `over` is set: values, and few enough slices that the budget also admits others."""
    path = "/store/m/value" if n % 8 else "/v1/data/m/volume"
    while not over.is_set():
        with contextlib.suppress(OSError), socket.create_connection((server.host, server.port), SECONDS) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SIP_BYTES)
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            while not over.is_set() and client.recv(SIP_BYTES):
                counts["sips"] += 1
                time.sleep(0.05)


@contextlib.contextmanager
def cgroup(limit):
    """A memory cgroup; yields what a process calls to be in it, and how many were killed there."""
    first = pathlib.Path("/sys/fs/cgroup/memory")
    folder = (first if first.is_dir() else first.parent) / f"zarrd-{os.getpid()}"
    if first.is_dir():
        bounds, events = ["memory.limit_in_bytes"], "memory.oom_control"
    else:
        (folder.parent / "cgroup.subtree_control").write_text("+memory")
        bounds, events = ["memory.max"], "memory.events"
    folder.mkdir()
    try:
        for bound in bounds:
            (folder / bound).write_text(str(limit))

        def enter():
            (folder / "cgroup.procs").write_text(str(os.getpid()))

        def killed():
            facts = dict(line.split() for line in (folder / events).read_text().splitlines())
            return int(facts["oom_kill"])

        yield enter, killed
    finally:
        folder.rmdir()
