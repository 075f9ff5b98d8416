"""Nothing stale: files that other programs write again within one step of the file system's clock, and by memory maps.

Each write is of the same length, and each is read at once: as a value, as elements, and by the entity tag of the answer
before. The times of a file with 128-byte inodes are whole seconds, so that most of these writes change nothing of them."""

import contextlib
import mmap
import os
import pathlib
import subprocess
import tempfile
import urllib.error
import urllib.request

import data
from server import zarrd

LENGTH = 256


def run(long):
    count = 2_000 if long else 200
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind, mounted in [("times of whole seconds", coarse(folder)), ("times of nanoseconds", plain(folder))]:
            with mounted as root:
                rows += [(f"{what}, {kind}", f"{stale} of {asked}") for what, stale, asked in written(root, count)]
        with plain(folder) as root:
            rows += [(what, f"{stale} of {asked}") for what, stale, asked in mapped(root, count)]
    wrong = [row for row in rows if not row[1].startswith("0 of ")]
    assert not wrong, wrong
    return [(f"stale after a write: {what}", measured) for what, measured in rows]


@contextlib.contextmanager
def coarse(folder):
    """A file system that counts in seconds."""
    image, root = folder / "image", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-I", "128", image], check=True, env={"PATH": os.environ["PATH"] + ":/usr/sbin"})
    root.mkdir()
    subprocess.run(["mount", "-o", "loop", image, root], check=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", root], check=True)


@contextlib.contextmanager
def plain(folder):
    with tempfile.TemporaryDirectory(dir=folder) as root:
        yield pathlib.Path(root)


def in_place(file, value):
    with file.open("r+b") as opened:
        opened.write(value)


def replaced(file, value):
    new = file.with_name("new")
    new.write_bytes(value)
    new.rename(file)


def written(root, count):
    """What was stale after how many writes of each kind."""
    with zarrd(f"m={root}") as server:
        for what, write in [("written in place", in_place), ("replaced by a rename", replaced)]:
            file = make(root)
            yield (what, *asked(server, lambda value: write(file, value), count))


def mapped(root, count):
    """The same for a file that stays mapped, with a mount whose options say that times are not reliable."""
    file = make(root)
    with zarrd(f"m={root}", MOUNTS__M__FRESHNESS="uncached") as server:
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), LENGTH) as memory:
            def write(value):
                memory[:] = value

            yield ("by a memory map, `uncached`", *asked(server, write, count))


def make(root):
    data.write(root, "a/zarr.json", data.document([LENGTH], [LENGTH], [], "uint8"))
    file = root / "a" / "c" / "0"
    data.write(root, "a/c/0", bytes(LENGTH))
    return file


def asked(server, write, count):
    """Writes and asks; how often an answer was not of what was written last, and how many there were."""
    stale = answers = 0
    tags = dict.fromkeys(["/store/m/a/c/0", "/v1/data/m/a?slice=:"], '"none"')
    for n in range(count):
        value = bytes([n % 255 + 1]) * LENGTH
        write(value)
        for path, before in tags.items():
            for headers in [{}, {"If-None-Match": before}, {"Range": "bytes=0-9"}]:
                body, tags[path] = get(server, path, headers)
                answers += 1
                stale += body not in (value, value[:10])
    return stale, answers


def get(server, path, headers):
    """The body and the entity tag; without a body where the answer is 304."""
    try:
        with urllib.request.urlopen(urllib.request.Request(server.base + path, headers=headers)) as answer:
            return answer.read(), answer.headers["ETag"]
    except urllib.error.HTTPError as error:
        return b"", error.headers["ETag"]
