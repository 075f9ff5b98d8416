"""Slices from the cache of zarrd, from Tiled, and from nginx with the same bytes in a file; `run` says how."""

import argparse
import contextlib
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import data
import processes
import table
from table import Goal

AIMS = {"plane": (30, 200), "block": (4, 8), "series": (50, 100)}
"""The floor and the aim for each kind of slice: Tiled's time ÷ zarrd's."""
SECONDS = 12
"""For each slice."""
ROUNDS = 15


@contextlib.contextmanager
def tiled(folder, names):
    port = processes.free_port()
    command = [sys.executable, "-B", str(pathlib.Path(__file__).with_name("server.py")), str(folder), str(port), *names]
    with (
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process,
        processes.ended(process),
    ):
        processes.wait_for(port, process)
        yield processes.Server(process, f"http://127.0.0.1:{port}")


def measure(folder, part, servers, measured):
    """Asks the servers in turn; adds what they took, in microseconds."""
    paths = {
        "zarrd": f"/v1/data/bench/{part.array}?slice={part.query}",
        "nginx": f"/slices/{part.file}",
        "Tiled": f"/api/v1/array/full/{part.array}?slice={part.query}&format=application/octet-stream",
    }
    for name, path in paths.items():
        _, body = processes.get(servers[name].base + path)
        assert body == folder.file(part).read_bytes(), f"{name} sends other bytes for {part.name}"
    clients = {name: processes.Client(server) for name, server in servers.items()}
    names = list(paths)
    end = time.monotonic() + SECONDS
    for done in range(ROUNDS):
        first = done % len(names)
        for name in names[first:] + names[:first]:
            # One short request is easily disturbed, hence the median of nine. One of Tiled's takes as long as many of the others'.
            times = [clients[name].timed(paths[name]) for _ in range(1 if name == "Tiled" else 9)]
            measured.add(part.name, name, p50=statistics.median(times) * 1e6)
        if done >= 2 and time.monotonic() > end:
            break


def compare(folder, servers):
    measured = table.Rounds()
    lines = []
    for part in folder.slices:
        measure(folder, part, servers, measured)
        ratios = {f"Tiled ÷ {name}": measured.ratio(part.name, "p50", "Tiled", name) for name in ("zarrd", "nginx")}
        lines.append([
            part.name,
            *(table.milliseconds(measured.median(part.name, name, "p50")) for name in servers),
            *(f"{ratio:,.0f}" for ratio in ratios.values()),
            *table.judged([Goal("Tiled ÷ zarrd", *AIMS[part.kind])], ratios),
        ])
    table.show(
        "Warm slices, one client: p50 in ms",
        ["slice", *servers, "Tiled ÷ zarrd", "Tiled ÷ nginx", "floor", "aim", "is"],
        lines,
    )


def main():
    arguments = argparse.ArgumentParser(prog="tests/bench/tiled/run")
    arguments.add_argument("--small", action="store_true", help="an eighth of the data")
    folder = data.Data(os.environ["ZARRD_BENCH_DATA"], arguments.parse_args().small)
    names = sorted({part.array for part in folder.slices})
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {
            "zarrd": stack.enter_context(processes.zarrd(folder.folder, scratch / "log")),
            "nginx": stack.enter_context(processes.nginx(folder.folder, scratch / "nginx", None)),
            "Tiled": stack.enter_context(tiled(folder.folder, names)),
        }
        print(f"{datetime.datetime.now(datetime.UTC).date()}, Tiled beside zarrd as shipped and nginx")
        compare(folder, servers)


if __name__ == "__main__":
    main()
