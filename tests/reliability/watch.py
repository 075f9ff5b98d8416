"""Files that the kernel watches no more: a server whose user may have no watches, too few, or loses them to others in the
middle. No answer is stale, whichever program writes the files. The log says once why every request checks them."""

import pathlib
import random
import tempfile
import time

import data
from server import zarrd

CHUNKS = 40
LENGTH = 64
READS = 12
"""Reads between two writes: the server watches files that are read often."""
MESSAGE = "watches no more files"
LIMITS = {
    "no instance": {"instances": 0},
    "no watch": {"watches": 0},
    "watches for a few": {"watches": 12},
    "no limit": {},
}


def run(long):
    rounds = 600 if long else 15
    rows = []
    for kind, limits in LIMITS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "served"
            data.write(folder, "a/zarr.json", data.document([LENGTH * CHUNKS], [LENGTH], [], "uint8"))
            for number in range(CHUNKS):
                data.write(folder, f"a/c/{number}", bytes(LENGTH))
            log = pathlib.Path(name) / "log"
            with log.open("w") as errors, zarrd(
                f"m={folder}", around=limited(limits), errors=errors, LOG__LEVEL="warn",
            ) as server:
                stale, asked, seconds = written(server, folder, rounds)
            said = log.read_text().count(MESSAGE)
            assert stale == 0, f"{kind}: {stale} of {asked} answers"
            assert said == (1 if limits else 0), f"{kind}: said {said} times: {log.read_text()[:500]}"
            rows.append((
                f"files written by others, and for watching them {kind}",
                f"0 of {asked:,} answers stale; {1000 * seconds / asked:.2f} ms each; the log says so "
                f"{'once' if said else 'nowhere'}",
            ))
    return rows


def limited(limits):
    """A command that runs another where a user may watch only so much: it does not take from what others may."""
    settings = "".join(f"echo {count} > /proc/sys/user/max_inotify_{kind} && " for kind, count in limits.items())
    return ["unshare", "--user", "--map-root-user", "sh", "-c", f'{settings}exec "$0" "$@"']


def written(server, folder, rounds):
    """How many answers were of what had been overwritten, of how many, and how long these took."""
    dice, values = random.Random(1), [bytes(LENGTH)] * CHUNKS
    stale = asked = 0
    seconds = 0.0
    for number in range(rounds):
        chunk, value = dice.randrange(CHUNKS), bytes([number % 255 + 1]) * LENGTH
        file = folder / f"a/c/{chunk}"
        if number % 3 == 0:
            new = file.with_name("new")
            new.write_bytes(value)
            new.rename(file)
        elif number % 3 == 1 and file.exists():
            with file.open("r+b") as opened:
                opened.write(value)
        else:
            file.unlink(missing_ok=True)
            value = bytes(LENGTH)
        values[chunk] = value
        for _ in range(READS):
            for path, expected in [
                ("/v1/data/m/a?slice=:", b"".join(values)),
                (f"/v1/data/m/a?slice={chunk * LENGTH}:{chunk * LENGTH + 9}", value[:9]),
            ]:
                begun = time.monotonic()
                status, body = server.get(path)
                seconds += time.monotonic() - begun
                asked += 1
                stale += (status, body) != (200, expected)
    return stale, asked, seconds
