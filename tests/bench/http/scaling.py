"""How what zarrd takes grows: with connections, with the bytes of a slice, with the chunks of an array, with slow readers.

Ratios of zarrd to itself; how nginx takes more connections stands beside it, for some of what they cost is the system's.
"""

import contextlib
import http.client
import selectors
import socket
import time
import urllib.parse

import data
import processes
import slices
import table
from table import Goal

MIB = 1 << 20
CONNECTIONS = (16, 64, 256, 1000)
NGINX = "16 KiB, nginx"
STEADY = (Goal("1000 ÷ 16", 0.8, 1.0),)
LINEAR = (Goal("64 MiB ÷ 1 MiB", 2, 1.25, at_least=False),)
CONSTANT = (Goal("many ÷ few", 1.25, 1.1, at_least=False),)

READERS = 64
SIP_BYTES = 64 << 10
SLOW_SECONDS = 3
PAUSE_SECONDS = 0.02
"""What slow readers take at a time, for how long, and their pause."""


def run(bench):
    connections(bench)
    lengths(bench)
    chunks(bench)
    slow_readers(bench)


def connections(bench):
    patch = next(part for part in bench.data.slices if part.name == "A patch")
    slices.check(bench, bench.shipped, patch)
    value = f"values/{data.VALUES['16 KiB']}"
    asked = {
        "16 KiB": f"{bench.shipped.base}/store/bench/{value}",
        "warm A patch": slices.url(bench.shipped, patch),
        NGINX: f"{bench.nginx.base}/{value}",
    }
    # A thousand connections take a while to come about, and are counted from their first.
    seconds = {count: max(0.7 if count < 1000 else 3.0, bench.effort.load) for count in CONNECTIONS}
    measured = table.Rounds()
    for turn in bench.rounds(CONNECTIONS, share=1.2, times=2):
        for name, url in asked.items():
            for count in turn:
                measured.add(name, count, rate=processes.load(url, count, seconds[count])["rate"])
    lines = []
    for name in asked:
        ratio = measured.ratio(name, "rate", CONNECTIONS[-1], CONNECTIONS[0])
        cells = [f"{measured.median(name, count, 'rate'):,.0f}" for count in CONNECTIONS]
        goals = () if name == NGINX else STEADY
        lines.append([name, *cells, f"{ratio:.2f}", *table.judged(goals, {"1000 ÷ 16": ratio})])
    header = ["what", *map(str, CONNECTIONS), "1000 ÷ 16", "floor", "aim", "is"]
    table.show(f"Scaling: requests a second by connections (medians of {measured.count} rounds)", header, lines)


def lengths(bench):
    asked = {part.shape[0] * part.shape[1] * part.shape[2] * 2 // MIB: part for part in bench.data.blocks}
    first = {}
    for mib, part in asked.items():
        slices.check(bench, bench.shipped, part)
        first[mib], cache = slices.check(bench, bench.shipped, part)
        assert cache == "zarrd; hit", f"{part.name} is not kept"
    measured = table.Rounds()
    for turn in bench.rounds(asked, share=0.2):
        for mib in turn:
            result = processes.load(slices.url(bench.shipped, asked[mib]), 1, max(bench.effort.load, 5 * first[mib]))
            measured.add("slice", mib, each=result["p50"] / mib)
    ratio = measured.ratio("slice", "each", max(asked), min(asked))
    cells = [table.milliseconds(measured.median("slice", mib, "each")) for mib in asked]
    table.show(
        f"Scaling: ms a MiB of a cached slice (medians of {measured.count} rounds)",
        [*(f"{mib} MiB" for mib in asked), "64 MiB ÷ 1 MiB", "floor", "aim", "is"],
        [[*cells, f"{ratio:.2f}", *table.judged(LINEAR, {"64 MiB ÷ 1 MiB": ratio})]],
    )


def chunks(bench):
    """Nothing is kept: the array is opened for every slice."""
    measured = table.Rounds()
    with bench.zarrd("chunks", core=0, CACHE__DECODED_SIZE="0", CACHE__NODE_SIZE="0") as server:
        asked = {name: f"{server.base}/v1/data/bench/{name}?slice=20000:30000" for name in data.LINES}
        bodies = [processes.get(url)[1] for url in asked.values()]
        assert len(bodies[0]) == 20000 and bodies[0] == bodies[1], "elements of few and of many chunks differ"
        for turn in bench.rounds(asked, share=0.1):
            for name in turn:
                measured.add("line", name, p50=processes.load(asked[name], 1, bench.effort.load)["p50"])
    ratio = measured.ratio("line", "p50", "many", "few")
    cells = [table.milliseconds(measured.median("line", name, "p50")) for name in asked]
    table.show(
        f"Scaling: ms to open an array and read a slice of it (p50, medians of {measured.count} rounds)",
        [*(f"{count:,} chunks" for count in data.LINES.values()), "many ÷ few", "floor", "aim", "is"],
        [[*cells, f"{ratio:.2f}", *table.judged(CONSTANT, {"many ÷ few": ratio})]],
    )


def slow_readers(bench):
    """The default configuration: requests whose answers do not fit into the memory budget are refused."""
    block = bench.data.blocks[-1]
    lines = []
    for name, path in [
        ("slices of 64 MiB", f"/v1/data/bench/A?slice={block.query}"),
        ("a shard", f"/store/bench/{bench.data.shard_file}"),
    ]:
        # Refusals are as they should be.
        with bench.zarrd("slow") as server:
            served = sip(server, path)
            peak = server.resident_bytes("VmHWM") / MIB
            verdict = "held" if peak <= server.memory_mib else "**over**"
            lines.append([name, f"{served} of {READERS}", f"{peak:,.0f}", f"{server.memory_mib:,.0f}", verdict])
    header = ["what", "readers served, others refused", "RSS at most, MiB", "said at the start", "is"]
    table.show("Scaling: memory under slow readers", header, lines)


def sip(server, path):
    """Has many clients read slowly for a while; how many were answered, which is once their turn in the queue is over."""
    address = urllib.parse.urlsplit(server.base)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(READERS):
            reader = stack.enter_context(socket.create_connection((address.hostname, address.port), processes.SECONDS))
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
            selector.register(reader, selectors.EVENT_READ)
        statuses = {}
        end = time.monotonic() + SLOW_SECONDS
        while time.monotonic() < end:
            for key, _ in selector.select(PAUSE_SECONDS):
                read = key.fileobj.recv(SIP_BYTES)
                if not read:
                    selector.unregister(key.fileobj)
                elif key.fileobj not in statuses:
                    statuses[key.fileobj] = int(read.split(b" ", 2)[1])
            time.sleep(PAUSE_SECONDS)
        refused = list(statuses.values()).count(http.client.SERVICE_UNAVAILABLE)
        served = list(statuses.values()).count(http.client.OK)
        assert served + refused == READERS, statuses
        return served
