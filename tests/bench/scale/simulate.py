"""Replays the traces of many people against 1 to 100 replicas in front of one bucket, and counts what the bucket is asked for.

Each replica is a process of zarrd. A proxy that hashes is simulated: a request goes to the replica that its path hashes to, or to
the next in turn. Every response is compared in its length with that of the bucket.
"""

import asyncio
import collections
import contextlib
import hashlib
import itertools
import pathlib
import random
import shutil
import threading
import urllib.parse

import bucket
import data
import processes
import table

HERE = pathlib.Path(__file__).parent
PEOPLE, TOGETHER = 40, 10
"""Sessions in all, and at one time."""
SETS, EXPONENT = 20, 1.1
"""Data sets, and the exponent of Zipf's law by which people choose one."""
MEMORY, DISK = 64 << 20, 1 << 30
"""Bytes for stored values of each replica: in memory, and on its disk."""
REPLICAS = [1, 10, 100]
OFF = dict.fromkeys(["DECODED_SIZE", "INDEX_SIZE", "ENCODED_SIZE", "NODE_SIZE"], "0")

REQUEST_PRICE, TIB_PRICE = 0.40, 92.16
"""Dollars for a million GET requests, and for a TiB that leaves the cloud, by the price lists of large providers."""


def traces():
    """What each kind of client requests: method, key, range."""
    read = lambda name: [line.split("\t") for line in (HERE / name).read_text().splitlines()]  # noqa: E731
    return [read("viewer.trace"), read("notebook.trace")]


def sessions():
    """The requests of each person, the same in every run."""
    chance = random.Random(1)
    weights = [1 / (rank + 1) ** EXPONENT for rank in range(SETS)]
    kinds = traces()
    for person in range(PEOPLE):
        name = chance.choices(range(SETS), weights)[0]
        trace = kinds[person % len(kinds)]
        # People begin at other places of the same data.
        begin = chance.randrange(len(trace))
        yield [(method, f"set-{name}/{key}", part) for method, key, part in trace[begin:] + trace[:begin]]


def by_path(path, replicas):
    """Rendezvous hashing, as `hash $uri consistent` of nginx has the effect of."""
    return max(range(replicas), key=lambda replica: hashlib.blake2b(f"{replica} {path}".encode(), digest_size=8).digest())


class Connection:
    """One connection to a replica."""

    def __init__(self, base):
        self.address = urllib.parse.urlsplit(base)
        self.streams = None

    async def ask(self, method, path, part):
        """The status and the bytes of the body. A connection that was idle may have been closed."""
        try:
            return await self.ask_once(method, path, part)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.close()
            return await self.ask_once(method, path, part)

    async def ask_once(self, method, path, part):
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.address.hostname, self.address.port)
        reader, writer = self.streams
        ranged = f"Range: {part}\r\n" if part != "-" else ""
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: {self.address.netloc}\r\n{ranged}\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status, length = int(head.split()[1]), int(head.partition("content-length: ")[2].split("\r\n")[0] or 0)
        if method == "GET":
            await reader.readexactly(length)
        return status, length if method == "GET" else 0

    def close(self):
        if self.streams:
            self.streams[1].close()
            self.streams = None


async def replay(bases, is_hashed):
    """All sessions; the number of responses of each status, and the bytes of their bodies."""
    waiting, turn = collections.deque(sessions()), itertools.count()
    chosen, answers, received = {}, collections.Counter(), 0

    async def person():
        nonlocal received
        connections = [Connection(base) for base in bases]
        try:
            while waiting:
                for method, path, part in waiting.popleft():
                    if is_hashed and path not in chosen:
                        chosen[path] = by_path(path, len(bases))
                    replica = chosen[path] if is_hashed else next(turn) % len(bases)
                    status, length = await connections[replica].ask(method, f"/store/bucket/{path}", part)
                    answers[status] += 1
                    received += length
        finally:
            for connection in connections:
                connection.close()

    await asyncio.gather(*(person() for _ in range(TOGETHER)))
    return answers, received


@contextlib.contextmanager
def replicas(count, place, scratch, tier, freshness):
    """The addresses of running servers."""
    settings = OFF | {"MOUNTS__BUCKET__URL": f"{place.base}/", "MOUNTS__BUCKET__FRESHNESS": freshness}
    settings = {name if "MOUNTS" in name else f"CACHE__{name}": value for name, value in settings.items()}
    settings |= {"CACHE__VALUE_SIZE": str(MEMORY if tier != "none" else 0), "LOG__LEVEL": "error", "CPU__THREADS": "1"}
    with contextlib.ExitStack() as running:
        bases = []
        for number in range(count):
            own = {"CACHE__DISK__PATH": str(scratch / f"disk-{number}"), "CACHE__DISK__SIZE": str(DISK)} if tier == "disk" else {}
            server = running.enter_context(processes.zarrd(None, scratch / "zarrd.log", **settings, **own))
            threading.Thread(target=server.process.stdout.read, daemon=True).start()
            bases.append(server.base)
        yield bases


def run(place, scratch, tier, freshness, count, is_hashed):
    """One row of the table."""
    scratch.mkdir()
    place.requests()
    with replicas(count, place, scratch, tier, freshness) as bases:
        place.requests()
        answers, received = asyncio.run(replay(bases, is_hashed))
    shutil.rmtree(scratch)
    assert set(answers) <= {200, 206, 404}, answers
    asked = place.requests()
    requests, fetched = len(asked), sum(size for method, *_, size in asked if method == "GET")
    total = sum(answers.values())
    per_million = requests / total * REQUEST_PRICE
    per_tib = requests / (received / 2**40) / 1e6 * REQUEST_PRICE
    return [
        tier,
        freshness,
        count,
        "path" if is_hashed else "in turn",
        f"{requests / total:.3f}",
        f"{fetched / received:.3f}",
        f"{per_million:.3f}",
        f"{per_tib:.2f}",
        f"{fetched / received * TIB_PRICE:.2f}",
    ]


def main(scratch):
    rows = []
    with bucket.bucket(data.folder(), scratch / "bucket") as place:
        runs = [("none", "always", 1, True)]
        runs += [(tier, "immutable", count, True) for tier in ["memory", "disk"] for count in REPLICAS]
        runs += [("disk", "immutable", 10, False), ("disk", "always", 10, True)]
        for number, each in enumerate(runs):
            rows.append(run(place, scratch / str(number), *each))
            print("|", " | ".join(map(str, rows[-1])), "|", flush=True)
    head = ["caches", "freshness", "replicas", "chosen by", "requests ÷ client requests", "bytes ÷ client bytes"]
    head += ["$ per million client requests", "$ per TiB, requests", "$ per TiB, egress"]
    table.show("What the bucket is asked for", head, rows)
