"""S6, cuts of power: a disk that stops in the middle of writes and of erasing whole prefixes, and what is there afterwards.

The disk is an ext4 in a file. It is shut down as it stands, so that whatever was not yet on it is gone; then the server is
killed, and the file is mounted again as after a power cut. With `durability = "rename"`, which promises nothing about
power, values must be lost: otherwise the simulated cut would prove nothing.
"""

import contextlib
import fcntl
import http.client
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import threading
import time

from server import SECONDS, zarrd

SHUTDOWN = 0x8004587D
WITHOUT_FLUSHING = 2
DISK_BYTES = 256 << 20
WRITERS = 6
KEYS_EACH = 6
FOLDERS = 2
"""Prefixes of each writer that are erased as a whole."""
BYTES = 48 << 10


def run(long):
    found = {}
    for durability, count in [("fsync", 1000 if long else 20), ("rename", 25 if long else 3)]:
        acknowledged, prefixes, lost, torn, left = cut_often(durability, count)
        what = f"{count} cuts, {acknowledged:,} writes and {prefixes:,} erasures of prefixes acknowledged"
        found[durability] = f"{what}: {lost} lost, {torn} torn, {left} files left over"
        assert torn == left == 0, found
        assert (lost == 0) == (durability == "fsync"), found
    return [(f"power cuts, `durability = \"{durability}\"`", measured) for durability, measured in found.items()]


def cut_often(durability, count):
    with tempfile.TemporaryDirectory() as folder:
        disk, mounted = pathlib.Path(folder) / "disk", pathlib.Path(folder) / "mounted"
        mounted.mkdir()
        with open(disk, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
        writers = [Writer(n) for n in range(WRITERS)]
        acknowledged = prefixes = lost = torn = left = 0
        for turn in range(count):
            with mount(disk, mounted), served(mounted, durability) as server:
                begin(writers, server)
                time.sleep(random.uniform(0.1, 0.6))
                cut(mounted)
                server.kill()
                acknowledged += sum(writer.end() for writer in writers)
                prefixes += sum(writer.prefixes for writer in writers)
            with mount(disk, mounted), served(mounted, durability) as server:
                for writer in writers:
                    one_lost, one_torn = writer.check(server)
                    lost, torn = lost + one_lost, torn + one_torn
                staging = mounted / "root" / ".zarr-server" / "staging"
                left += len(list(staging.iterdir()))
        return acknowledged, prefixes, lost, torn, left


@contextlib.contextmanager
def mount(disk, mounted, *options):
    subprocess.run(["mount", "-o", ",".join(["loop", *options]), disk, mounted], check=True)
    try:
        yield
    finally:
        # The server that had it open has exited, but the kernel may not have closed its files yet.
        for _ in range(SECONDS * 10):
            if subprocess.run(["umount", mounted], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("it cannot be unmounted")


def served(mounted, durability):
    root = mounted / "root"
    root.mkdir(exist_ok=True)
    settings = {"MOUNTS__W__OPTIONS__DURABILITY": durability, "MOUNTS__W__ALLOW_PREFIX_DELETE": "true"}
    return zarrd(f"w={root}", "--writable", **settings)


def cut(mounted):
    directory = os.open(mounted, os.O_RDONLY)
    fcntl.ioctl(directory, SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
    os.close(directory)


def begin(writers, server):
    for writer in writers:
        writer.begin(server)


class Writer:
    """Writes its own keys over and over, and knows of each what it may hold."""

    def __init__(self, n):
        self.dice = random.Random(n)
        self.folders = [f"{n}/c/{folder}/" for folder in range(FOLDERS)]
        self.keys = [f"{self.folders[k % FOLDERS]}{k}" for k in range(KEYS_EACH)]
        self.held = dict.fromkeys(self.keys)
        self.in_flight = {}
        self.number = self.acknowledged = self.prefixes = 0

    def begin(self, server):
        self.acknowledged = self.prefixes = 0
        self.thread = threading.Thread(target=self.write, args=(server,))
        self.thread.start()

    def end(self):
        self.thread.join()
        return self.acknowledged

    def write(self, server):
        connection = http.client.HTTPConnection(server.host, server.port, timeout=SECONDS)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            while True:
                path, changed = self.change()
                self.in_flight |= changed
                value = None if path.endswith("/") else changed[path]
                connection.request("DELETE" if value is None else "PUT", f"/store/w/{path}", value)
                answer = connection.getresponse()
                answer.read()
                if answer.status >= 300:
                    # The disk has stopped.
                    return
                for key in changed:
                    self.held[key] = self.in_flight.pop(key)
                self.acknowledged += 1
                self.prefixes += path.endswith("/")

    def change(self):
        """A key or a prefix, and what its keys are to hold."""
        if self.dice.random() < 0.1:
            folder = self.dice.choice(self.folders)
            return folder, {key: None for key in self.keys if key.startswith(folder)}
        key = self.dice.choice(self.keys)
        self.number += 1
        erased = self.dice.random() < 0.1
        return key, {key: None if erased else value_of(key, self.number, self.dice.randrange(1, BYTES))}

    def check(self, server):
        """How many values are older than what was acknowledged, and how many are none that ever was."""
        lost = torn = 0
        for key in self.keys:
            status, body = server.get(f"/store/w/{key}")
            assert status in (200, 404), f"{key}: {status}"
            found = body if status == 200 else None
            allowed = [self.held[key], *([self.in_flight[key]] if key in self.in_flight else [])]
            if found not in allowed:
                whole = found is None or found == value_of(key, number_of(found), len(found))
                lost, torn = lost + whole, torn + (not whole)
            self.held[key] = found
        self.in_flight.clear()
        return lost, torn


def value_of(key, number, length):
    """A value by which a torn one is distinguished from a whole one, made from a number, a key and a length."""
    head = b"%020d" % number
    return (head + random.Random(f"{key} {number}").randbytes(64) * (length // 64 + 1))[:max(length, 20)]


def number_of(value):
    return int(value[:20]) if value[:20].isdigit() else -1
