"""A history of element writes: clients of several replicas write disjoint elements of the same shards of a bucket that fails.

Each client owns some runs of elements in every shard, and gives a run a new number with each write. An element says of which
place, write and number it is, so that the state of each run is known from reading it. Of a run, at any time after the answer to
its last write that was acknowledged: all its elements have one number, which is that of this write, or of a later one whose
outcome was `unknown`; never that of a write of which the server said that nothing was written, and never an older one.

4,000 writes; with `--long` a million, or as many as `ZARRD_ELEMENT_WRITES` has.
"""

import contextlib
import http.client
import json
import os
import random
import struct
import threading
import time
import zlib

import object_store
from server import SECONDS, zarrd

REPLICAS = 3
CLIENTS = 32
SHARDS = 4
RUN = 6
"""Elements of a run; it may lie in two inner chunks."""
INNER = 16
SHARD = CLIENTS * RUN
FAULTS = 20
"""Of a thousand requests to the bucket."""
KILL_SECONDS = 5
"""How long a replica lives before it is killed and another one is started, one after the other."""
READ = 0.25
"""The part of writes after which the run is read by another replica."""
SETTLE_SECONDS = 60
LOST = 50
WRITES_OF_LOSS = 500


def element(place, number):
    """8 bytes that name the element and the write that stored it."""
    stamp = struct.pack("<HI", place, number)
    return stamp + struct.pack("<H", zlib.crc32(stamp) & 0xFFFF)


def number_of(place, stored):
    """The number of the write that stored an element; 0 for the fill value, `None` for what no write stores."""
    if stored == bytes(8):
        return 0
    number = struct.unpack("<I", stored[2:6])[0]
    return number if stored == element(place, number) else None


class Run:
    """A run of elements, and what its writer knows of it."""

    def __init__(self, start):
        self.start = start
        self.last = 0
        """The number of the last write."""
        self.acknowledged = 0
        self.unknown = set()
        """Later writes of which it is not known whether they were stored."""

    def body(self):
        return b"".join(element(self.start + at, self.last) for at in range(RUN))

    def settle(self, written):
        """Notes the outcome of the last write: stored, not stored, or not known."""
        if written is True:
            self.acknowledged, self.unknown = self.last, set()
        elif written is None:
            self.unknown.add(self.last)

    def fault_of(self, stored):
        """What is wrong with the elements that are stored; `None` if nothing is. What was read is known from then on."""
        numbers = {number_of(self.start + at, stored[at * 8 : at * 8 + 8]) for at in range(RUN)}
        if len(numbers) != 1 or None in numbers:
            return f"torn: {sorted(map(str, numbers))}"
        (number,) = numbers
        if number == self.acknowledged:
            return None
        if number in self.unknown:
            self.acknowledged = number
            self.unknown = {other for other in self.unknown if other != number}
            return None
        return f"lost: {number} is stored, {self.acknowledged} was acknowledged, {sorted(self.unknown)} are unknown"


class Replicas:
    """The addresses of the servers, of which one or another is killed."""

    def __init__(self, port, stack):
        mount = {"URL": "s3://bench/data", "WRITABLE": "true"}
        options = {"ENDPOINT": f"http://127.0.0.1:{port}", "ALLOW_HTTP": "true", "REGION": "us-east-1", "CREDENTIALS": "anonymous"}
        settings = {f"MOUNTS__M__{name}": value for name, value in mount.items()}
        self.settings = settings | {f"MOUNTS__M__OPTIONS__{name}": value for name, value in options.items()}
        self.stack = stack
        self.servers = [self.start() for _ in range(REPLICAS)]
        self.kills = 0

    def start(self):
        return self.stack.enter_context(zarrd(**self.settings))

    def kill_one(self):
        # Nothing is sent to it until there is another one.
        self.servers.pop(0).kill()
        self.servers.append(self.start())
        self.kills += 1


class Client:
    """Writes its runs in turns, through any of the replicas."""

    def __init__(self, number, replicas, work):
        self.dice, self.replicas, self.work = random.Random(number), replicas, work
        self.runs = [Run(shard * SHARD + number * RUN) for shard in range(SHARDS)]
        self.connections = {}
        self.counts = dict.fromkeys(("acknowledged", "refused", "unknown", "reads"), 0)
        self.faults = []
        self.thread = threading.Thread(target=self.write)

    def write(self):
        while self.work.take():
            run = self.dice.choice(self.runs)
            run.last += 1
            written = self.put(run)
            run.settle(written)
            self.counts[{True: "acknowledged", False: "refused", None: "unknown"}[written]] += 1
            if written is not True:
                # As long as everything fails, the clients would only count that.
                time.sleep(self.dice.random() * 0.05)
            elif self.dice.random() < READ:
                self.read(run)

    def put(self, run):
        """Whether a write is stored; `None` if that is not known."""
        try:
            status, body = self.ask("PUT", self.path(run), run.body())
        except (OSError, http.client.HTTPException):
            return None
        if status == 204:
            return True
        assert status >= 500 or status == 429, (status, body)
        with contextlib.suppress(ValueError):
            return False if json.loads(body).get("written") is False else None
        return None

    def read(self, run):
        try:
            status, stored = self.ask("GET", self.path(run))
        except (OSError, http.client.HTTPException):
            return
        if status == 200:
            self.counts["reads"] += 1
            self.check(run, stored)

    def check(self, run, stored):
        fault = run.fault_of(stored)
        if fault:
            self.faults.append(f"elements from {run.start}: {fault}")

    def path(self, run):
        return f"/v1/data/m/a?slice={run.start}:{run.start + RUN}&format=bytes"

    def ask(self, method, path, body=None):
        server = self.dice.choice(self.replicas.servers)
        connection = self.connections.get(server)
        if connection is None:
            connection = self.connections[server] = server.connect()
        try:
            connection.request(method, path, body, {"content-type": "application/octet-stream"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise


class Work:
    """How many writes are left."""

    def __init__(self, count):
        self.left, self.lock = count, threading.Lock()

    def take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0


ARRAY = {"shape": [SHARDS * SHARD], "data_type": "uint64", "chunks": [INNER], "shards": [SHARD]}


def make(replicas, array):
    """Creates an array; the bucket may fail meanwhile."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        with contextlib.closing(replicas.servers[0].connect()) as connection:
            connection.request("PUT", "/v1/nodes/m/a", json.dumps(array), {"content-type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        # After a failure it may be there.
        if answer.status in (201, 412):
            return
        assert time.monotonic() < until, (answer.status, said)


def whole(replicas, at, form="bytes"):
    """All elements, read through one of the replicas."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        status, stored = replicas.servers[at].get(f"/v1/data/m/a?format={form}")
        if status == 200:
            return stored
        assert time.monotonic() < until, (status, stored)
        time.sleep(0.1)


class History:
    """What was written and read, and what was wrong with it."""

    def __init__(self, writes, lost=0):
        with object_store.running(FAULTS, lost) as (port, counts), contextlib.ExitStack() as stack:
            replicas = Replicas(port, stack)
            make(replicas, ARRAY)
            work = Work(writes)
            self.clients = [Client(number, replicas, work) for number in range(CLIENTS)]
            begun = time.monotonic()
            for client in self.clients:
                client.thread.start()
            while any(client.thread.is_alive() for client in self.clients):
                time.sleep(0.1)
                if time.monotonic() - begun > (replicas.kills + 1) * KILL_SECONDS and work.left > 0:
                    replicas.kill_one()
            self.seconds = time.monotonic() - begun
            for at in range(REPLICAS):
                self.check(whole(replicas, at))
            self.kills = replicas.kills
        (self.requests,) = counts
        self.faults = [fault for client in self.clients for fault in client.faults]

    def check(self, stored):
        for client in self.clients:
            for owned in client.runs:
                client.check(owned, stored[owned.start * 8 : (owned.start + RUN) * 8])


def run(long):
    # First with a bucket that loses changes: a check that finds nothing there would find nothing at all.
    of_loss = History(WRITES_OF_LOSS, lost=LOST)
    assert any("lost" in fault for fault in of_loss.faults), "changes that the bucket has lost were not noticed"
    writes = int(os.environ.get("ZARRD_ELEMENT_WRITES", 1_000_000 if long else 4_000))
    history = History(writes)
    assert not history.faults, f"{len(history.faults)} faults: {history.faults[:5]}"
    total = {name: sum(client.counts[name] for client in history.clients) for name in history.clients[0].counts}
    requests = history.requests
    injected = sum(requests.values()) - requests["requests"]
    measured = (
        f"{writes:,} writes by {CLIENTS} clients through {REPLICAS} replicas, {history.kills} killed, {injected:,} faults in "
        f"{requests['requests']:,} requests to the bucket, {history.seconds:.0f} s: {total['acknowledged']:,} acknowledged, {total['refused']:,} "
        f"refused, {total['unknown']:,} unknown; {total['reads']:,} reads meanwhile; 0 lost, 0 torn, 0 twice; of a bucket that loses one of "
        f"{LOST} changes, {len(of_loss.faults):,} faults were found"
    )
    return [("element writes of disjoint elements in the same shards", measured)]
