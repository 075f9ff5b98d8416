"""S7, slow clients: slowhttptest in its four modes, and a good client beside it, who must not fail."""

import pathlib
import subprocess
import tempfile
import time

import data
from server import clients, zarrd

CONNECTIONS = 4000
MODES = {
    "heads that never end": ["-H"],
    "bodies that never end": ["-B", "-t", "PUT", "-s", "100000"],
    "a thousand ranges": ["-R", "-a", "1", "-b", "3000"],
    "answers that are hardly read": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32"],
}


def run(long):
    seconds = 240 if long else 8
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        answers = data.volume(folder, "volume", 4)
        data.write(folder, "value", data.VALUE)
        with zarrd(f"m={folder}", "--writable") as server:
            with clients(server, answers, 2) as alone:
                time.sleep(seconds / 3)
            assert not alone.failed, alone.failed[:3]
            for mode, options in MODES.items():
                with clients(server, answers, 2, also=[503]) as good:
                    held = attack(server, options, seconds)
                assert not good.failed, (mode, good.failed[:3])
                assert server.process.poll() is None
                # Ranges are answered at once: that connections are held is what the others are about.
                assert held > CONNECTIONS // 4 or "-R" in options, f"{mode}: {held} connections are no attack"
                rows.append((
                    f"slow clients, {seconds} s: {mode}",
                    f"up to {held:,} connections at a time; a good client: {len(good.seconds):,} answers, p99 "
                    f"{good.p99():.1f} ms (alone {alone.p99():.1f} ms), {good.refused:,} refused with `Retry-After`, 0 failed",
                ))
    return rows


def attack(server, options, seconds):
    """Runs slowhttptest, again and again, for it ends once all of its connections were closed; the most connections that the
    server had open at a time."""
    url, rest = f"{server.base}/store/m/value", ["-r", "1000", "-i", "5", "-l", str(seconds), "-p", "5"]
    command = ["slowhttptest", *options, "-u", url, "-c", str(CONNECTIONS), *rest]
    held, ends = 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and time.monotonic() < ends:
                held = max(held, server.descriptors())
                time.sleep(0.2)
            process.terminate()
    return held
