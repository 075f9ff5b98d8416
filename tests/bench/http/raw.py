"""Raw values: zarrd as shipped and without its access log, against nginx with and without one, and with open files kept."""

import dataclasses

import data
import processes
import table
from table import Goal

LOG = Goal("log", 0.9, 0.95)
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
        goals = goals if connections > 1 else ()
        if (value, connections) == ("16 KiB", 16):
            goals = (*goals, LOG)
        yield Row(value, f"values/{data.VALUES[value]}", connections, goals)
    headers = (("Range", f"bytes={data.RANGE[0]}-{data.RANGE[1] - 1}"),)
    for connections in some:
        goals = RANGES if connections > 1 else ()
        yield Row("64 KiB of a shard", bench.data.shard_file, connections, goals, headers)


def run(bench):
    contenders = {
        "zarrd": (bench.shipped, f"{bench.shipped.base}/store/bench"),
        "silent": (bench.silent, f"{bench.silent.base}/store/bench"),
        "nginx": (bench.nginx, bench.nginx.base),
        "logging": (bench.logging, bench.logging.base),
        "kept": (bench.kept, bench.kept.base),
    }
    asked = list(rows(bench))
    for row in asked:
        bodies = [processes.get(f"{base}/{row.file}", row.headers)[1] for _, base in contenders.values()]
        assert bodies.count(bodies[0]) == len(bodies), f"answers to {row.name} differ"
    measured = table.Rounds()
    # Twice the time of a section, and rounds of half the time: the medians of few rounds differ by a tenth from run to run.
    for turn in bench.rounds(contenders, share=2, times=2):
        for row in asked:
            for name in turn:
                server, base = contenders[name]
                before = server.cpu_seconds()
                result = processes.load(f"{base}/{row.file}", row.connections, bench.effort.load / 2, row.headers)
                used = (server.cpu_seconds() - before) * 1e6
                measured.add(row.name, name, rate=result["rate"], cpu=used, requests=result["requests"])
    table.show(
        f"Raw values: requests a second, and CPU µs of the server a request (medians of {measured.count} rounds)",
        ["value, connections", "zarrd", "zarrd, no access log", "nginx, no access log", "nginx, access log",
         "nginx, no access log, files kept open", "rate ÷ nginx", "÷ nginx that logs", "rate ÷ kept", "CPU ÷ nginx",
         "log on ÷ off", "floor", "aim", "is"],
        [line(row, measured) for row in asked],
    )


def line(row, measured):
    def rate(one, other):
        return measured.ratio(row.name, "rate", one, other)

    names = ("zarrd", "silent", "nginx", "logging", "kept")
    cpu = {name: measured.each(row.name, name, "cpu", by="requests") for name in names}
    ratios = {
        "rate": rate("zarrd", "nginx"),
        "logging": rate("zarrd", "logging"),
        "kept": rate("zarrd", "kept"),
        "CPU": cpu["zarrd"] / cpu["nginx"] if cpu["nginx"] else float("inf"),
        "log": rate("zarrd", "silent"),
    }
    cells = [f"{measured.median(row.name, name, 'rate'):,.0f} ({used:,.0f})" for name, used in cpu.items()]
    figures = [f"{ratio:.2f}" for ratio in ratios.values()]
    return [row.name, *cells, *figures, *table.judged(row.goals, ratios)]
