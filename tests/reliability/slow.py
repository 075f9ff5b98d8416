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
                attack = [
                    *["slowhttptest", *options, "-u", f"{server.base}/store/m/value", "-c", str(CONNECTIONS)],
                    *["-r", "1000", "-i", "5", "-l", str(seconds), "-p", "5"],
                ]
                held = 0
                with (
                    clients(server, answers, 2) as good,
                    subprocess.Popen(attack, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
                ):
                    begun = time.monotonic()
                    while process.poll() is None and time.monotonic() < begun + seconds:
                        held = max(held, server.descriptors())
                        time.sleep(0.2)
                    process.terminate()
                    process.communicate()
                assert not good.failed, good.failed[:3]
                assert held > CONNECTIONS // 4, f"{held} connections are no attack"
                assert server.process.poll() is None
                rows.append((
                    f"slow clients: {mode}",
                    f"up to {held:,} connections held for {seconds} s; a good client: {len(good.seconds):,} answers, 0 failed, "
                    f"p99 {good.p99():.1f} ms (alone {alone.p99():.1f} ms)",
                ))
    return rows
