"""What other tests measure: of Rust's, those that may take longer than `cargo test` does, and the replicas of `tests/deploy`."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


def rust(name, target="it", **environment):
    """Runs a test of Rust for as long as its environment says; what it prints."""
    command = ["cargo", "test", "--locked", "--quiet", "--test", target, name, "--", "--nocapture"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def faults(long):
    """S4: a bucket that fails at random."""
    printed = rust("random_backend_faults", ZARRD_ROUNDS="3000" if long else "500")
    counts = re.search(r"^(\d+) faults in (\d+) requests$", printed, re.MULTILINE)
    measured = f"{counts[1]} in {counts[2]} requests: 0 wrong bytes, 0 cut short without an error, 0 false absences"
    return [("faults of a bucket, at random", measured)]


def damaged(long):
    """S1: stored chunks that were damaged or forged."""
    count = 100_000 if long else 5_000
    printed = rust("a_damaged_chunk", "damaged", ZARRD_DAMAGED=str(count))
    rows = re.findall(r"^(\S+): (\d+ decoded, \d+ corrupt; at most .*)$", printed, re.MULTILINE)
    assert len(rows) == 9, printed
    return [(f"damaged chunks of {codec}", f"{count:,}: {measured}; 0 crashes") for codec, measured in rows]


def killed(long):
    """S6."""
    printed = rust("a_killed_server", ZARRD_KILLS="5000" if long else "100", ZARRD_KILL_BYTES=str((64 if long else 4) << 20))
    return [("kill -9 in the middle of writes", re.search(r"^\d+ kills.*$", printed, re.MULTILINE)[0])]


def copies(long):
    """Nodes that are copied and moved while the server is killed."""
    printed = rust("after_each_kill_within_a_copy_or_a_move", ZARRD_COPY_KILLS="500" if long else "40")
    return [("kill -9 in the middle of copies and moves", re.search(r"^\d+ kills.*$", printed, re.MULTILINE)[0])]


def disk(long):
    """A disk cache in front of a bucket whose objects change."""
    printed = rust("a_killed_server_with_a_disk_cache", ZARRD_DISK_KILLS="500" if long else "20")
    return [("kill -9 with a disk cache under load", re.search(r"^\d+ kills.*$", printed, re.MULTILINE)[0])]


def writers(long):
    """S5: increments of one value by many, under conditions, by one server; and one log, by two before a bucket with faults."""
    printed = rust("every_acknowledged_increment_is_stored", ZARRD_ROUNDS="10000" if long else "250")
    rows = re.findall(r"^(.*): (\d+ increments, \d+ refused)$", printed, re.MULTILINE)
    assert rows, printed
    rows = [(f"concurrent increments of one value, {kind}", f"{counts}, 0 lost") for kind, counts in rows]
    printed = rust("acknowledged_writes", ZARRD_ROUNDS="3000" if long else "300")
    counts = re.search(r"^(\d+) writes by two servers, (\d+) reads$", printed, re.MULTILINE)
    measured = f"{counts[1]} writes and {counts[2]} reads: 0 lost, 0 twice, 0 older than what was acknowledged before"
    return [*rows, ("one log, by two servers before one bucket with faults", measured)]


def replicas(long):
    """Three replicas behind nginx."""
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures.json"
        environment = os.environ | {"ZARRD_FIGURES": str(figures), "ZARRD_RESTARTS": "51" if long else "6"}
        command = [ROOT / "tests" / "deploy" / "run", "-k", "replicas"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        return list(json.loads(figures.read_text()).items())
