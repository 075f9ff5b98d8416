"""Appends through several replicas while one after another is killed, paused for longer than its lease, or has its clock stepped.

Clients append rows of their name and a number to one array, with a key each, and send a row again through another replica until it is
acknowledged. At the end each acknowledged row is there once, where its answer said, and nothing else is there but rows whose answer
was not awaited, once each at most. The bucket fails meanwhile.

24 changes of replicas; with `--long` 1,500, of which 1,000 are kills, or as many as `ZARRD_APPEND_CHANGES` has.
"""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import tempfile
import threading
import time

import elements
import object_store
from server import zarrd

CLIENTS = 8
LEASE_SECONDS = 5
"""As in `write/lease/record.rs`."""
ANSWER_SECONDS = 3
"""How long a client waits for an answer before it sends the row again."""
CHANGE_SECONDS = 1
CHANGES = ("kill", "kill", "kill", "kill", "pause", "step")
STEPS = (-7200, -30, -6, 6, 30, 7200)
"""Seconds by which a clock is set back or forth."""
FAULTS = 10
"""Of a thousand requests to the bucket."""
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
ARRAY = {"shape": [0, 2], "data_type": "uint32", "chunks": [16, 2], "shards": [64, 2]}


class Replicas(elements.Replicas):
    """Servers with clocks of their own."""

    def __init__(self, port, stack, folder):
        self.folder, self.clocks, self.counts = folder, {}, collections.Counter()
        super().__init__(port, stack)

    def start(self):
        clock = self.folder / f"clock-{len(self.clocks)}"
        clock.write_text("+0")
        # Only the time of day is set: that which measures durations is never stepped.
        variables = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": 1, "FAKETIME_DONT_FAKE_MONOTONIC": 1}
        around = ("env", *(f"{name}={value}" for name, value in variables.items()))
        server = self.stack.enter_context(zarrd(around=around, **self.settings))
        self.clocks[server] = clock
        return server

    def change(self, dice):
        """Kills a replica, pauses it, or steps its clock."""
        kind = dice.choice(CHANGES)
        self.counts[kind] += 1
        if kind == "kill":
            self.kill_one()
        elif kind == "step":
            self.clocks[dice.choice(self.servers)].write_text(f"{dice.choice(STEPS):+}")
        else:
            paused = dice.choice(self.servers)
            paused.process.send_signal(signal.SIGSTOP)
            time.sleep(LEASE_SECONDS + dice.random() * LEASE_SECONDS)
            paused.process.send_signal(signal.SIGCONT)


class Appender:
    """A client that sends a row until that is acknowledged, and then the next one."""

    def __init__(self, name, replicas):
        self.name, self.replicas, self.dice = name, replicas, random.Random(name)
        self.acknowledged, self.number, self.connections, self.resent = {}, 1, {}, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.append)

    def append(self):
        while not self.over.is_set():
            start = self.send()
            if start is None:
                self.resent += 1
                time.sleep(self.dice.random() * 0.1)
            else:
                self.acknowledged[self.number] = start
                self.number += 1

    def send(self):
        """Where the row is; `None` if it has to be sent again."""
        server = self.dice.choice(self.replicas.servers)
        connection = self.connections.get(server)
        if connection is None:
            connection = http.client.HTTPConnection(server.host, server.port, timeout=ANSWER_SECONDS)
            self.connections[server] = connection
        headers = {"content-type": "application/json", "idempotency-key": f"{self.name}-{self.number}"}
        try:
            connection.request("POST", "/v1/data/m/a?append=0", json.dumps([[self.name, self.number]]), headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return None
        if answer.status in (200, 201):
            return json.loads(body)["start"]
        assert answer.status >= 500 or answer.status == 429, (answer.status, body)
        return None


def faults(rows, appenders):
    """What is wrong with the rows that are stored."""
    places = collections.defaultdict(list)
    for place, row in enumerate(rows):
        places[tuple(row)].append(place)
    found = [f"{row} is there {len(at)} times" for row, at in places.items() if len(at) > 1]
    for appender in appenders:
        for number, start in appender.acknowledged.items():
            stored = places.pop((appender.name, number), [])
            if start not in stored:
                found.append(f"{appender.name}-{number} was acknowledged at {start}, and is at {stored}")
        # That which was not acknowledged yet.
        places.pop((appender.name, appender.number), None)
    return found + [f"{row} was never appended" for row in places]


def run(long):
    changes = int(os.environ.get("ZARRD_APPEND_CHANGES", 1_500 if long else 24))
    dice = random.Random(changes)
    with tempfile.TemporaryDirectory() as folder, object_store.running(FAULTS) as (port, counts), contextlib.ExitStack() as stack:
        replicas = Replicas(port, stack, pathlib.Path(folder))
        elements.make(replicas, ARRAY)
        appenders = [Appender(name, replicas) for name in range(1, CLIENTS + 1)]
        for appender in appenders:
            appender.thread.start()
        for _ in range(changes):
            time.sleep(dice.random() * 2 * CHANGE_SECONDS)
            replicas.change(dice)
        for appender in appenders:
            appender.over.set()
        for appender in appenders:
            appender.thread.join()
        for at in range(len(replicas.servers)):
            stored = elements.whole(replicas, at, "json")
            found = faults(json.loads(stored), appenders)
            assert not found, f"{len(found)} faults: {found[:5]}"
        # A check that finds nothing wrong with a row that is there twice, or not, would find nothing at all.
        rows = json.loads(stored)
        assert faults([*rows, rows[0]], appenders) and faults(rows[1:], appenders)
    (requests,) = counts
    done = replicas.counts
    acknowledged = sum(len(appender.acknowledged) for appender in appenders)
    assert acknowledged > 0 and all(done[kind] for kind in CHANGES), (acknowledged, done)
    injected = sum(requests.values()) - requests["requests"]
    measured = (
        f"{done['kill']:,} kills, {done['pause']:,} pauses of {LEASE_SECONDS} to {2 * LEASE_SECONDS} s, {done['step']:,} steps of a clock by up "
        f"to 2 h, {injected:,} faults of the bucket: {acknowledged:,} acknowledged, {sum(appender.resent for appender in appenders):,} sent again; "
        f"each is there once, where it was said to be"
    )
    return [(f"appends by {CLIENTS} clients through {len(replicas.servers)} replicas", measured)]
