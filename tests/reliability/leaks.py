"""S8, leaks: ten thousand clients that leave at any time, and what is left of them: no descriptor, no file, no memory that
is not within the bound."""

import contextlib
import pathlib
import random
import socket
import struct
import tempfile
import threading
import time

import data
from server import SECONDS, mib, zarrd

CLIENTS = 8
SETTINGS = {
    "CACHE__DECODED_SIZE": 32 << 20,
    "CACHE__VALUE_SIZE": 8 << 20,
    "HTTP__INFLIGHT_SIZE": 64 << 20,
    "FETCH__INFLIGHT_SIZE": 64 << 20,
    "READ__SEGMENT_SIZE": 4 << 20,
}


def run(long):
    count = 100_000 if long else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        answers = data.volume(folder, "volume", 8)
        data.write(folder, "value", data.VALUE)
        with zarrd(f"m={folder}", "--writable", **SETTINGS) as server:
            answers |= {"/store/m/value": data.VALUE}
            warm(server, answers)
            descriptors, resident = server.descriptors(), server.resident()
            begun = time.monotonic()
            paths = list(answers)
            threads = [
                threading.Thread(target=leave, args=(server, paths, n, count // CLIENTS)) for n in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - begun
            until(lambda: server.descriptors() <= descriptors, "descriptors are left open")
            until(lambda: not list((folder / ".zarr-server" / "staging").iterdir()), "files are left in staging")
            check(server, answers)
            after, peak = server.resident(), server.resident("VmHWM")
            bound = server.bound + CLIENTS * server.connection
            assert peak <= bound, f"{mib(peak)} of {mib(bound)}"
            return [(
                "clients that leave at any time",
                f"{count:,} in {seconds:.0f} s: 0 descriptors and 0 staging files left; "
                f"RSS {mib(resident)} before, {mib(after)} after, {mib(peak)} at most of {mib(bound)}",
            )]


def check(server, answers):
    for path, expected in answers.items():
        assert server.get(path) == (200, expected), path


def warm(server, answers):
    """Asks until values and slices are watched for changes: that takes one descriptor of the mount, which stays."""
    for _ in range(300):
        check(server, answers)


def leave(server, paths, seed, count):
    """Asks, or begins an upload, and goes: at once, after a moment, or in the middle of the answer."""
    dice = random.Random(seed)
    for n in range(count):
        connected = socket.create_connection((server.host, server.port), SECONDS)
        with contextlib.suppress(ConnectionError), connected as client:
            if dice.random() < 0.2:
                client.sendall(b"PUT /store/m/left/%d HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" % seed)
                client.sendall(bytes(dice.randrange(99_999)))
            else:
                head = f"GET {dice.choice(paths)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
                whole = dice.random() < 0.9
                client.sendall(head if whole else head[: dice.randrange(len(head))])
                if whole and dice.random() < 0.5:
                    client.recv(dice.randrange(1, 1 << 16))
            if dice.random() < 0.3:
                time.sleep(dice.random() / 100)
            if dice.random() < 0.5:
                # With a reset, not with an end.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def until(holds, otherwise):
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
