"""Raw values: zarrd against nginx, with and without open files kept."""

import dataclasses

import data
import processes
import table
from table import Goal

SMALL_VALUES = (Goal("rate", 0.8, 1.1), Goal("kept", None, 0.9))
LARGE_VALUES = (Goal("rate", 0.9, 1.0), Goal("CPU", 4, 2, at_least=False))
RANGES = (Goal("rate", 0.7, 1.0),)


@dataclasses.dataclass(frozen=True)
class Row:
    """A value or a range of one, and how many connections ask for it."""

    value: str
    file: str
    connections: int
    goals: tuple
    headers: tuple = ()

    @property
    def name(self):
        return f"{self.value}, {self.connections}"


def rows(bench):
    """There are goals for many connections only."""
    some = (1, 16)
    many = some if bench.small else (1, 16, 64)
    for value, connections, goals in [
        *(("16 KiB", connections, SMALL_VALUES) for connections in many),
        *(("256 KiB", connections, SMALL_VALUES) for connections in many),
        *(("4 MiB", connections, LARGE_VALUES) for connections in some),
    ]:
        yield Row(value, f"values/{data.VALUES[value]}", connections, goals if connections > 1 else ())
    headers = (("Range", f"bytes={data.RANGE[0]}-{data.RANGE[1] - 1}"),)
    for connections in some:
        goals = RANGES if connections > 1 else ()
        yield Row("64 KiB of a shard", bench.data.shard_file, connections, goals, headers)


def run(bench):
    contenders = {
        "zarrd": (bench.warm, f"{bench.warm.base}/store/bench"),
        "nginx": (bench.nginx, bench.nginx.base),
        "kept": (bench.kept, bench.kept.base),
    }
    asked = list(rows(bench))
    for row in asked:
        bodies = [processes.get(f"{base}/{row.file}", row.headers)[1] for _, base in contenders.values()]
        assert bodies.count(bodies[0]) == len(bodies), f"answers to {row.name} differ"
    measured = table.Rounds()
    for turn in bench.rounds(contenders):
        for row in asked:
            for name in turn:
                server, base = contenders[name]
                before = server.cpu_seconds()
                told = processes.load(f"{base}/{row.file}", row.connections, bench.effort.load, row.headers)
                used = (server.cpu_seconds() - before) * 1e6
                measured.add(row.name, name, rate=told["rate"], cpu=used, requests=told["requests"])
    table.show(
        f"Raw values: requests a second, and CPU µs of the server a request (medians of {measured.count} rounds)",
        ["value, connections", "zarrd", "nginx", "nginx, files kept open", "rate ÷ nginx", "rate ÷ kept", "CPU ÷ nginx",
         "floor", "aim", "is"],
        [line(row, measured) for row in asked],
    )


def line(row, measured):
    cpu = {name: measured.each(row.name, name, "cpu", by="requests") for name in ("zarrd", "nginx", "kept")}
    ratios = {
        "rate": measured.ratio(row.name, "rate", "zarrd", "nginx"),
        "kept": measured.ratio(row.name, "rate", "zarrd", "kept"),
        "CPU": cpu["zarrd"] / cpu["nginx"] if cpu["nginx"] else float("inf"),
    }
    cells = [f"{measured.median(row.name, name, 'rate'):,.0f} ({used:,.0f})" for name, used in cpu.items()]
    figures = [f"{ratio:.2f}" for ratio in ratios.values()]
    return [row.name, *cells, *figures, *table.judged(row.goals, ratios)]
