"""Starts the contenders, has them measured in turn, and prints the tables; `run` says what of."""

import argparse
import contextlib
import dataclasses
import datetime
import os
import pathlib
import platform
import resource
import statistics
import sys
import tempfile
import time

import data
import processes
import raw
import scaling
import slices
import table

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Effort:
    """Seconds of one load and of a section, and the most rounds of it."""

    load: float
    section: float
    rounds: int


SMALL = Effort(load=0.35, section=40, rounds=5)
FULL = Effort(load=1.5, section=180, rounds=5)


class Bench:
    """The data set, the servers and the readers. zarrd runs as shipped; what differs from that has a name."""

    def __init__(self, stack, scratch, small):
        self.small = small
        self.effort = SMALL if small else FULL
        self.data = data.Data(os.environ["ZARRD_BENCH_DATA"], small)
        self.scratch = scratch

        def nginx(name, **more):
            return stack.enter_context(processes.nginx(self.data.folder, scratch / name, core=0, **more))

        self.shipped = stack.enter_context(self.zarrd("shipped", core=0))
        self.silent = stack.enter_context(self.zarrd("silent", core=0, LOG__LEVEL="warn"))
        self.minute = stack.enter_context(self.zarrd("minute", core=0, MOUNTS__BENCH__FRESHNESS="ttl:60s"))
        self.forgetful = stack.enter_context(self.zarrd("forgetful", CACHE__DECODED_SIZE="0"))
        self.nginx = nginx("nginx")
        self.logging = nginx("logging", access_log=True)
        self.kept = nginx("kept", open_files=True)
        self.readers = {
            name: stack.enter_context(processes.reader(name, self.data.folder))
            for name in ("zarrs", "tensorstore", "zarr-python")
        }

    def zarrd(self, name, **more):
        """Starts zarrd with these settings; its log is named so."""
        return processes.zarrd(self.data.folder, self.scratch / f"{name}.log", **more)

    def rounds(self, contenders, share=1, times=1):
        """The contenders round by round, each time another one first, within the time of a section or a share of
        it. `times` multiplies the number of rounds, for small differences."""
        contenders = list(contenders)
        begin = time.monotonic()
        for done in range(self.effort.rounds * times):
            start = time.monotonic()
            first = done % len(contenders)
            yield contenders[first:] + contenders[:first]
            now = time.monotonic()
            if now - begin + (now - start) > self.effort.section * share:
                return

    def the_rest(self):
        def memory(what, server):
            bound = "–" if server.memory_mib is None else f"≤ {server.memory_mib:,.0f}, as said at the start"
            resident, peak = (server.resident_bytes(field) / MIB for field in ("VmRSS", "VmHWM"))
            return [f"RSS after the run, {what}, MiB", f"{resident:,.0f} (most {peak:,.0f})", bound]

        starts = [processes.start_up_seconds(self.data.folder, self.scratch / "start.log") * 1000 for _ in range(5)]
        rows = [
            memory("zarrd", self.shipped),
            memory("zarrd, without an access log", self.silent),
            memory("zarrd, validating once a minute", self.minute),
            memory("zarrd, without a decoded cache", self.forgetful),
            memory("nginx", self.nginx),
            ["start to first answer, ms", f"{statistics.median(starts):.0f}", "< 100"],
            ["binary, MB", f"{pathlib.Path(os.environ['ZARRD']).stat().st_size / 1e6:.1f}", "< 40"],
        ]
        table.show("The rest", ["what", "is", "bound"], rows)


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    # It matters: BBR spaces the segments of a response by timers, which take long in a virtual machine.
    control = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return f"{len(processes.CORES)} cores ({next(names, platform.machine())}), TCP {control}"


def load_average():
    return "load " + ", ".join(f"{load:.1f}" for load in os.getloadavg())


def main():
    arguments = argparse.ArgumentParser(prog="tests/bench/http/run")
    arguments.add_argument("--small", action="store_true", help="an eighth of the data, in about four minutes")
    small = arguments.parse_args().small
    # Of the load: a file for each connection.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(stack, scratch, small)
        today = datetime.datetime.now(datetime.UTC).date()
        print(f"{today}, {machine()}, {'small' if small else 'full'} data set; {load_average()} before the run")
        start = time.monotonic()
        raw.run(bench)
        sending = slices.warm(bench)
        slices.cold(bench, sending)
        scaling.run(bench)
        bench.the_rest()
    print(f"measured in {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
