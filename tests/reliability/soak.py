"""A long run of the disk cache in front of a bucket that changes and fails, with `stale` and restarts: nothing wrong, and memory
and descriptors stay as they are.

Ten seconds; with `--long` four hours, or as many seconds as `ZARRD_SOAK_SECONDS` has. With `ZARRD_SOAK_PAUSE`, the seconds between
two requests of a reader, other work goes on beside it. After each restart it prints what was measured so far.
"""

import os
import pathlib
import sys
import tempfile
import time

from bucket import Bucket, Reader, changing
from server import zarrd

READERS = 4
STALE = 5
RESTARTS = 12
"""Restarts in a run; every other one is a kill."""


def run(long):
    seconds = int(os.environ.get("ZARRD_SOAK_SECONDS", 4 * 3600 if long else 10))
    pause = float(os.environ.get("ZARRD_SOAK_PAUSE", 0))
    bucket = Bucket(2000, 1_000_000)
    readers = [Reader(bucket, seed, older=STALE, pause=pause) for seed in range(READERS)]
    most, memory, descriptors = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(RESTARTS):
            with served(bucket, folder) as server:
                for reader in readers:
                    reader.begin(server)
                until = time.monotonic() + seconds / RESTARTS
                while time.monotonic() < until:
                    # A tenth of the time everything fails, and a tenth a part of it.
                    bucket.failing = {0: 1000, 1: 300}.get(int(time.monotonic() / 2) % 10, 0)
                    changing(bucket, min(1, max(0.01, until - time.monotonic())), pause=max(0.005, pause))
                bucket.failing = 0
                for reader in readers:
                    reader.end()
                memory.append(server.resident())
                # The cache has each of its files open.
                files = len(list(pathlib.Path(folder).glob("cache/segment-*")))
                descriptors.append(server.descriptors() - files)
                most = max(most, server.resident("VmHWM"))
                bound = server.bound
                if turn % 2:
                    server.kill()
            print(measured(bucket, readers, memory, descriptors), file=sys.stderr, flush=True)
    answers, wrong = sum(reader.answers for reader in readers), sum(reader.wrong for reader in readers)
    assert wrong == 0, f"{wrong} of {answers} answers were wrong"
    assert most <= bound, f"{most} bytes of memory, more than {bound}"
    assert max(descriptors) <= min(descriptors) + 3 * READERS, descriptors
    return [("soak of the disk cache", f"{seconds} s, {measured(bucket, readers, memory, descriptors)}")]


def measured(bucket, readers, memory, descriptors):
    answers, wrong, failures = (sum(getattr(reader, what) for reader in readers) for what in ("answers", "wrong", "failures"))
    return (
        f"{len(memory)} restarts, {bucket.faults:,} faults, {answers:,} answers: {wrong} wrong, {failures:,} failures, "
        f"{min(memory) >> 20} to {max(memory) >> 20} MiB at the end of each run, "
        f"{min(descriptors)} to {max(descriptors)} descriptors beside the files of the cache"
    )


def served(bucket, folder):
    disk = {"CACHE__DISK__PATH": f"{folder}/cache", "CACHE__DISK__SIZE": "128MiB", "SERVER__MAX_MEMORY": "1GiB"}
    return zarrd(f"m={bucket.url}", MOUNTS__M__FRESHNESS=f"always, stale:{STALE}s", **disk)
