"""Cuts of power with the disk cache: what a disk that stopped in the middle of writes has afterwards is right or is read again.

The disk is that of `cuts`. Objects change all the time, so that a record of an old version would be noticed.
"""

import pathlib
import random
import subprocess
import tempfile
import time

from bucket import Bucket, Reader, changing
from cuts import cut, mount
from server import zarrd

DISK_BYTES = 256 << 20
READERS = 4
SOON = ("nodelalloc", "commit=1")
"""The options of a mount on which files are written within a second. Others are for half a minute in memory alone, and a cut takes
all of them."""


def run(long):
    count = 200 if long else 5
    with tempfile.TemporaryDirectory() as folder:
        disk, mounted = pathlib.Path(folder) / "disk", pathlib.Path(folder) / "mounted"
        mounted.mkdir()
        with open(disk, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
        bucket = Bucket(400, 600_000)
        readers = [Reader(bucket, seed) for seed in range(READERS)]
        hits = 0
        for _ in range(count):
            with mount(disk, mounted, *SOON), served(bucket, mounted) as server:
                hits += used(server, readers, bucket)
                for reader in readers:
                    reader.begin(server)
                changing(bucket, random.uniform(0.2, 1))
                cut(mounted)
                # The cache is read and written no more; the answers go on.
                changing(bucket, 0.1)
                for reader in readers:
                    reader.end()
                server.kill()
        answers, wrong = sum(reader.answers for reader in readers), sum(reader.wrong for reader in readers)
        assert wrong == 0, f"{wrong} of {answers} answers were wrong"
        assert hits > 0, "nothing came from the disk after a cut: this proves nothing"
    return [("power cuts with a disk cache", f"{count} cuts, {answers:,} answers, {hits:,} of them from the disk after a cut: 0 wrong")]


def served(bucket, mounted):
    none = {f"CACHE__{name}_SIZE": "0" for name in ("DECODED", "INDEX", "NODE", "VALUE", "ENCODED")}
    disk = {"CACHE__DISK__PATH": mounted / "cache", "CACHE__DISK__SIZE": "64MiB", "HTTP__PUBLIC_METRICS": "true"}
    return zarrd(f"m={bucket.url}", **none, **disk)


def used(server, readers, bucket):
    """Reads every object once after a cut: how many came from the disk."""
    with_connection = server.connect()
    for key in bucket.lengths:
        readers[0].check(with_connection, key)
    with_connection.close()
    time.sleep(0.1)
    metrics = server.get("/metrics")[1].decode()
    name = 'zarrd_disk_cache_reads_total{mount="m",from="disk"} '
    return sum(int(line.removeprefix(name)) for line in metrics.splitlines() if line.startswith(name))
