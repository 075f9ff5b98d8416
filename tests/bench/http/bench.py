"""Measures the contenders in turn and prints the tables; `run` says what of."""

import argparse
import contextlib
import dataclasses
import datetime
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

import numpy

import data
import processes
import table
from table import Goal, Rounds

MIB = 1 << 20
DECODED_BYTES = 3 << 30
"""Memory for decoded chunks where they are kept: enough for all of them."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """Seconds that one load takes, that a section may take, and the most rounds of it."""

    load: float
    section: float
    rounds: int


SMALL = Effort(load=0.5, section=50, rounds=3)
FULL = Effort(load=1.5, section=200, rounds=5)


@dataclasses.dataclass(frozen=True)
class Raw:
    """A stored value, or a range of one, and how many connections ask for it."""

    name: str
    file: str
    connections: int
    headers: tuple = ()
    rate: Goal | None = None
    kept: float | None = None
    """What is aimed at against nginx that keeps files open."""
    cpu: Goal | None = None

    @property
    def row(self):
        return f"{self.name}, {self.connections}"


class Bench:
    """The data set, the servers and the readers."""

    def __init__(self, stack, scratch, small):
        self.effort = SMALL if small else FULL
        self.data = data.Data(os.environ["ZARRD_BENCH_DATA"], small)
        folder = self.data.folder
        settings = {"ZARRD__CACHE__DECODED_BYTES": str(DECODED_BYTES), "ZARRD__CPU__THREADS": "0"}
        self.warm = stack.enter_context(processes.zarrd(folder, settings.items(), core=0))
        self.cold = stack.enter_context(processes.zarrd(folder, {"ZARRD__CACHE__DECODED_BYTES": "0"}.items()))
        self.nginx = stack.enter_context(processes.nginx(folder, scratch / "nginx", False, core=0))
        self.kept = stack.enter_context(processes.nginx(folder, scratch / "kept", True, core=0))
        self.readers = {
            name: stack.enter_context(processes.reader(name, folder))
            for name in ("zarrs", "tensorstore", "zarr-python")
        }

    def rounds(self, contenders):
        """The contenders round by round, each time another one first, within the time of a section."""
        contenders = list(contenders)
        begin = time.monotonic()
        for done in range(self.effort.rounds):
            start = time.monotonic()
            first = done % len(contenders)
            yield contenders[first:] + contenders[:first]
            now = time.monotonic()
            if now - begin + (now - start) > self.effort.section:
                return

    def raw_values(self):
        small_goal = Goal(0.8, 1.1)
        many = (1, 16) if self.effort is SMALL else (1, 16, 64)
        rows = [
            Raw(name, f"values/{data.VALUES[name]}", connections, (), *((small_goal, 0.9) if connections > 1 else ()))
            for name in ("16 KiB", "256 KiB")
            for connections in many
        ]
        for connections in (1, 16):
            goals = (Goal(0.9, 1.0), None, Goal(4, 2, at_least=False)) if connections > 1 else ()
            rows.append(Raw("4 MiB", f"values/{data.VALUES['4 MiB']}", connections, (), *goals))
        for connections in (1, 16):
            headers = (("Range", f"bytes={data.RANGE[0]}-{data.RANGE[1] - 1}"),)
            goals = (Goal(0.7, 1.0),) if connections > 1 else ()
            rows.append(Raw("64 KiB of a shard", self.data.shard_file, connections, headers, *goals))
        contenders = {
            "zarrd": (self.warm, f"{self.warm.base}/store/bench"),
            "nginx": (self.nginx, self.nginx.base),
            "kept": (self.kept, self.kept.base),
        }
        for row in rows:
            bodies = [processes.get(f"{base}/{row.file}", row.headers)[1] for _, base in contenders.values()]
            assert bodies.count(bodies[0]) == len(bodies), f"answers to {row.name} differ"
        measured = Rounds()
        for turn in self.rounds(contenders):
            for row in rows:
                for name in turn:
                    server, base = contenders[name]
                    before = server.cpu_seconds()
                    told = processes.load(f"{base}/{row.file}", row.connections, self.effort.load, row.headers)
                    cpu = (server.cpu_seconds() - before) / told["requests"] * 1e6
                    measured.add(row.row, name, rate=told["rate"], cpu=max(cpu, 0.01))
        lines = []
        for row in rows:
            lines.extend(self.raw_lines(row, measured))
        table.show(
            f"Raw values: requests a second, and CPU µs a request (medians of {measured.count} rounds)",
            ["value, connections", "zarrd", "nginx", "nginx, files kept open", "what", "ratio", "floor", "aim", "is"],
            lines,
        )

    @staticmethod
    def raw_lines(row, measured):
        def cell(name):
            rate, cpu = (measured.median(row.row, name, measure) for measure in ("rate", "cpu"))
            return f"{rate:,.0f} ({cpu:,.0f})"

        cells = [row.row, *map(cell, ("zarrd", "nginx", "kept"))]
        rate = measured.ratio(row.row, "rate", "zarrd", "nginx")
        yield [*cells, "rate ÷ nginx", f"{rate:.2f}", *table.goal_cells(row.rate, rate)]
        again = ["", "", "", ""]
        kept = measured.ratio(row.row, "rate", "zarrd", "kept")
        bounds = ["–", f"≥ {row.kept:g}", "reached" if kept >= row.kept else "not yet"] if row.kept else ["–"] * 3
        yield [*again, "rate ÷ files kept open", f"{kept:.2f}", *bounds]
        cpu = measured.median(row.row, "zarrd", "cpu") / measured.median(row.row, "nginx", "cpu")
        yield [*again, "CPU ÷ nginx", f"{cpu:.2f}", *table.goal_cells(row.cpu, cpu)]

    def check(self, server, part):
        """Asserts that an answer is what it must be; how long it took, and whether it came from the cache."""
        expected = (self.data.folder / "slices" / part.file).read_bytes()
        start = time.perf_counter()
        headers, body = processes.get(self.url(server, part))
        seconds = time.perf_counter() - start
        assert body == expected, f"{part.name} is not what it must be"
        return seconds, headers["Zarrd-Cache"]

    @staticmethod
    def url(server, part):
        return f"{server.base}/v1/data/bench/{part.array}?slice={part.query}"

    def warm_slices(self):
        goals = {"plane": Goal(0.35, 0.8), "block": Goal(0.55, 0.9), "series": Goal(0.06, 0.3)}
        rows = [(part, clients) for part in self.data.slices for clients in (1, 16)]
        cache = {}
        for part in self.data.slices:
            self.check(self.warm, part)
            _, cache[part.name] = self.check(self.warm, part)
        measured = Rounds()
        for turn in self.rounds(("zarrd", "nginx")):
            for part, clients in rows:
                urls = {"zarrd": self.url(self.warm, part), "nginx": f"{self.kept.base}/slices/{part.file}"}
                for name in turn:
                    told = processes.load(urls[name], clients, self.effort.load)
                    measured.add((part.name, clients), name, p50=told["p50"], p99=told["p99"])
        lines = []
        for part, clients in rows:
            row = part.name, clients

            def cell(name):
                return " / ".join(table.milliseconds(measured.median(row, name, at)) for at in ("p50", "p99"))

            cells = [f"{part.name}, {clients}", cell("zarrd"), cell("nginx"), cache[part.name]]
            fast = measured.ratio(row, "p50", "nginx", "zarrd")
            lines.append([*cells, "p50: nginx ÷ zarrd", f"{fast:.2f}", *goals[part.kind].cells(fast)])
            if clients > 1:
                slow = measured.ratio(row, "p99", "zarrd", "nginx")
                goal = Goal(2, 2, at_least=False)
                lines.append(["", "", "", "", "p99: zarrd ÷ nginx", f"{slow:.2f}", *goal.cells(slow)])
        table.show(
            f"Warm slices: p50 / p99 in ms (medians of {measured.count} rounds)",
            ["slice, clients", "zarrd", "nginx, same bytes", "cache", "what", "ratio", "floor", "aim", "is"],
            lines,
        )
        self.sending = {part.name: measured.median((part.name, 1), "nginx", "p50") for part in self.data.slices}

    def cold_slices(self):
        goal = Goal(1.15, 0.8, at_least=False)
        first = {}
        for part in self.data.slices:
            values = numpy.fromfile(self.data.folder / "slices" / part.file, numpy.uint8)
            expected = int(values.sum(dtype=numpy.uint64))
            for name, reader in self.readers.items():
                _, total = reader.read(part, times=1, seconds=0)
                assert total == expected, f"{name} reads {part.name} otherwise"
            first[part.name], cache = self.check(self.cold, part)
            assert cache != "hit", "what is cold must not be cached"
        measured = Rounds()
        for turn in self.rounds(("zarrd", *self.readers)):
            for part in self.data.slices:
                for name in turn:
                    if name == "zarrd":
                        seconds = max(self.effort.load, 3.5 * first[part.name])
                        p50 = processes.load(self.url(self.cold, part), 1, seconds)["p50"]
                    else:
                        each, _ = self.readers[name].read(part, times=20, seconds=self.effort.load)
                        p50 = statistics.median(each) * 1e6
                    measured.add(part.name, name, p50=p50)
        lines = []
        for part in self.data.slices:
            p50 = {name: measured.median(part.name, name, "p50") for name in ("zarrd", *self.readers)}
            better = min(("zarrs", "tensorstore"), key=p50.get)
            pairs = zip(measured.figures[part.name, "zarrd", "p50"], measured.figures[part.name, better, "p50"])
            ratio = statistics.median(mine / (theirs + self.sending[part.name]) for mine, theirs in pairs)
            cells = [table.milliseconds(time) for time in p50.values()]
            send = table.milliseconds(self.sending[part.name])
            lines.append([part.name, *cells, send, f"{ratio:.2f} ({better})", *goal.cells(ratio)])
        table.show(
            f"Cold slices: p50 in ms (medians of {measured.count} rounds)",
            ["slice", "zarrd", *self.readers, "the send", "zarrd ÷ (the better of zarrs and tensorstore + the send)", "floor", "aim", "is"],
            lines,
        )

    def the_rest(self):
        resident, peak = (self.warm.resident_bytes(field) / MIB for field in ("VmRSS", "VmHWM"))
        start = statistics.median(processes.start_up_seconds(self.data.folder) for _ in range(5)) * 1000
        size = pathlib.Path(os.environ["ZARRD"]).stat().st_size / MIB
        # The defaults of config/default.toml, but for the decoded chunks: indexes, nodes, answers and fetches under way.
        budget = DECODED_BYTES / MIB + 32 + 64 + 512 + 512
        cold = self.cold.resident_bytes() / MIB
        rows = [
            ["RSS after the run, MiB", f"{resident:,.0f} (most {peak:,.0f})", f"≤ {budget + 64:,.0f}: 64 + cache and budgets"],
            ["RSS after the run, no decoded chunk kept, MiB", f"{cold:,.0f}", f"≤ {64 + 32 + 64 + 512 + 512:,.0f}"],
            ["nginx, MiB", f"{self.nginx.resident_bytes() / MIB:,.0f}", ""],
            ["start to first answer, ms", f"{start:.0f}", "< 100"],
            ["binary, MiB", f"{size:.1f}", "< 38.1 (40 MB)"],
        ]
        table.show("The rest", ["what", "zarrd", "bound"], rows)


def main():
    arguments = argparse.ArgumentParser(prog="tests/bench/http/run")
    arguments.add_argument("--small", action="store_true", help="an eighth of the data, in less than three minutes")
    small = arguments.parse_args().small
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(stack, scratch, small)
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
        load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        today = datetime.datetime.now(datetime.UTC).date()
        size = "small data set" if small else "full data set"
        print(f"{today}, {len(processes.CORES)} cores ({model}), {size}; load before the run {load}")
        bench.raw_values()
        bench.warm_slices()
        bench.cold_slices()
        bench.the_rest()
    print(f"{time.monotonic() - start:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
