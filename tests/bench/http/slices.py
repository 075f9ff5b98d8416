"""Decoded slices: warm, against nginx with the same bytes in a file; cold, against readers that send nothing."""

import statistics
import time

import numpy

import processes
import table
from table import Goal

WARM = {"plane": (0.35, 0.8), "block": (0.55, 0.9), "series": (0.06, 0.3)}
"""The floor and the aim for each kind of slice, against nginx: of the median, and with several clients of the requests a second too. nginx
responds to some of several clients at once and to others late, so its median alone says little."""
SLOWEST = Goal("p99", 2, 2, at_least=False)
COLD = (Goal("ratio", 1.15, 0.8, at_least=False),)


def url(server, part):
    return f"{server.base}/v1/data/bench/{part.array}?slice={part.query}"


def check(bench, server, part):
    """Asserts that an answer is what it must be; how long it took, and whether it came from the cache."""
    start = time.perf_counter()
    headers, body = processes.get(url(server, part))
    seconds = time.perf_counter() - start
    assert body == bench.data.file(part).read_bytes(), f"{part.name} is not what it must be"
    return seconds, headers["Cache-Status"]


def warm(bench):
    """Shows the tables; returns what one client waits for nginx to send each slice, in microseconds."""
    each_time = "each checks its files for each request"
    once_a_minute = "each checks its files once a minute: `freshness = \"ttl:60s\"`, `open_file_cache_valid 1m`"
    sending = of_memory(bench, each_time, bench.shipped, bench.nginx)
    of_memory(bench, once_a_minute, bench.minute, bench.kept)
    return sending


def of_memory(bench, validation, server, peer):
    """Shows how one server compares with nginx; returns what one client waits for nginx."""
    rows = [(part, clients) for part in bench.data.slices for clients in (1, 16)]
    again = {}
    for part in bench.data.slices:
        check(bench, server, part)
        again[part.name] = check(bench, server, part)
    measured = table.Rounds()
    for turn in bench.rounds(("zarrd", "nginx")):
        for part, clients in rows:
            for name in turn:
                if name == "zarrd":
                    # Long enough for each client to be answered.
                    seconds = max(bench.effort.load, 3 * clients * again[part.name][0])
                    result = processes.load(url(server, part), clients, seconds)
                else:
                    result = processes.load(f"{peer.base}/slices/{part.file}", clients, bench.effort.load)
                measured.add((part.name, clients), name, **{at: result[at] for at in ("rate", "p50", "p99")})
    lines = []
    for part, clients in rows:
        row = part.name, clients
        cells = [f"{part.name}, {clients}"]
        for name in ("zarrd", "nginx"):
            cells.append(f"{measured.median(row, name, 'rate'):,.0f}")
            cells.append(" / ".join(table.milliseconds(measured.median(row, name, at)) for at in ("p50", "p99")))
        ratios = {
            "rate": measured.ratio(row, "rate", "zarrd", "nginx"),
            "p50": measured.ratio(row, "p50", "nginx", "zarrd"),
            "p99": measured.ratio(row, "p99", "zarrd", "nginx"),
        }
        bounds = WARM[part.kind]
        goals = (Goal("p50", *bounds), *((Goal("rate", *bounds), SLOWEST) if clients > 1 else ()))
        figures = [f"{ratio:.2f}" for ratio in ratios.values()]
        lines.append([*cells, again[part.name][1], *figures, *table.judged(goals, ratios)])
    table.show(
        f"Warm slices, {validation}: requests a second, and p50 / p99 in ms (medians of {measured.count} rounds)",
        ["slice, clients", "zarrd", "p50 / p99", "nginx, same bytes", "p50 / p99", "cache", "requests: zarrd ÷ nginx",
         "p50: nginx ÷ zarrd", "p99: zarrd ÷ nginx", "floor", "aim", "is"],
        lines,
    )
    return {part.name: measured.median((part.name, 1), "nginx", "p50") for part in bench.data.slices}


def cold(bench, sending):
    """Shows the table. What a reader takes is taken to be followed by the send, as of nginx."""
    for part in bench.data.slices:
        expected = int(numpy.fromfile(bench.data.file(part), numpy.uint8).sum(dtype=numpy.uint64))
        for name, reader in bench.readers.items():
            _, total = reader.read(part)
            assert total == expected, f"{name} reads {part.name} otherwise"
        _, cache = check(bench, bench.forgetful, part)
        assert cache != "zarrd; hit", "what is cold must not be cached"
    with bench.zarrd("cold", SERVER__ADMIN_LISTEN="127.0.0.1:0") as shipped:
        cold_beside(bench, sending, shipped)


def cold_beside(bench, sending, shipped):
    contenders = ("zarrd", "forgetful", *bench.readers)
    measured = table.Rounds()
    client, forgetful = processes.Client(shipped), processes.Client(bench.forgetful)

    def once(name, part):
        path = f"/v1/data/bench/{part.array}?slice={part.query}"
        if name == "zarrd":
            return client.cold(path, part.array)
        if name == "forgetful":
            return forgetful.timed(path)
        return bench.readers[name].read(part)[0]

    for turn in bench.rounds(contenders):
        for part in bench.data.slices:
            each = {name: [] for name in turn}
            end = time.monotonic() + bench.effort.load * len(turn)
            # In turn for each slice: who reads again at once finds busy processors and full caches, and who waits for a purge
            # does not.
            while time.monotonic() < end or len(each[turn[-1]]) < 3:
                for name in turn:
                    each[name].append(once(name, part))
            for name, seconds in each.items():
                measured.add(part.name, name, p50=statistics.median(seconds) * 1e6)
    lines = []
    for part in bench.data.slices:
        p50 = {name: measured.median(part.name, name, "p50") for name in contenders}
        better = min(("zarrs", "tensorstore"), key=p50.get)
        send = sending[part.name]
        ratios = [measured.ratio(part.name, "p50", name, better, added=send) for name in ("zarrd", "forgetful")]
        cells = [table.milliseconds(time) for time in (*p50.values(), send)]
        figures = [f"{ratios[0]:.2f} ({better})", f"{ratios[1]:.2f}"]
        lines.append([part.name, *cells, *figures, *table.judged(COLD, {"ratio": ratios[0]})])
    table.show(
        f"Cold slices: p50 in ms (medians of {measured.count} rounds); ratio = zarrd ÷ (the better of zarrs and tensorstore"
        " + the send)",
        ["slice", "zarrd, its cache purged before each", "zarrd, no decoded cache", *bench.readers, "the send", "ratio",
         "ratio, no decoded cache", "floor", "aim", "is"],
        lines,
    )
