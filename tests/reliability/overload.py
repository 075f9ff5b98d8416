"""S7, overload: twice and ten times as many clients as it takes to keep the server busy, each asking without a pause.

Other requests are refused with `Retry-After`. The test measures how many requests are answered and how fast, relative to the
load at capacity.
"""

import http.client
import pathlib
import re
import subprocess
import tempfile
import time

import data
from server import SECONDS, zarrd

BUSY = 32
"""Clients that keep it busy."""
SETTINGS = {"CACHE__DECODED_SIZE": 0, "HTTP__INFLIGHT_SIZE": 64 << 20}
SCRIPT = """
local n = 0
request = function()
    n = n + 1
    local first = n * 37 % 4000
    return wrk.format("GET", "/v1/data/m/volume?slice=" .. first .. ":" .. first + 40)
end
local threads = {}
setup = function(thread) table.insert(threads, thread) end
init = function() good, shed, other = 0, 0, 0 end
response = function(status)
    if status == 200 then good = good + 1
    elseif status == 503 or status == 429 then shed = shed + 1
    else other = other + 1 end
end
done = function(summary, latency)
    local good, shed, other = 0, 0, 0
    for _, thread in ipairs(threads) do
        good, shed, other = good + thread:get("good"), shed + thread:get("shed"), other + thread:get("other")
    end
    local errors = summary.errors
    local broken = errors.connect + errors.read + errors.write + errors.timeout
    local seconds, p99 = summary.duration / 1e6, latency:percentile(99) / 1e3
    print(string.format("counts %d %d %d %d %f %f", good, shed, other, broken, seconds, p99))
end
"""


def run(long):
    seconds = 600 if long else 15
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data.volume(folder, "volume", 16)
        script = folder / "load.lua"
        script.write_text(SCRIPT)
        with zarrd(f"m={folder}", **SETTINGS) as server:
            whole = None
            for factor in (1, 2, 10):
                good, shed, other, errors, lasted, p99 = load(server, script, BUSY * factor, seconds, rows)
                rate = good / lasted
                whole = whole or rate
                assert other == errors == 0, f"{other} other answers, {errors} broken connections"
                assert good > 0 and server.process.poll() is None
                rows.append((
                    f"overload {factor} × ({BUSY * factor} clients without pause, {seconds} s)",
                    f"{rate:,.0f} answers a second, {100 * rate / whole:.0f} % of capacity; {shed:,} refused with `Retry-After`; "
                    f"p99 {p99:.0f} ms; 0 others",
                ))
            begun = time.monotonic()
            assert server.get("/healthz")[0] == 200
            rows.append(("`/healthz` after it", f"{1000 * (time.monotonic() - begun):.1f} ms"))
    return rows


def load(server, script, count, seconds, rows):
    command = ["wrk", "-t1", f"-c{count}", f"-d{seconds}s", f"--timeout={SECONDS}s", "-s", script, server.base]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        # Health has no queue.
        slowest = 0.0
        while process.poll() is None:
            begun = time.monotonic()
            connection = http.client.HTTPConnection(server.host, server.port, timeout=SECONDS)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            slowest = max(slowest, time.monotonic() - begun)
            connection.close()
            time.sleep(0.2)
        counts = re.search("^counts (.*)$", process.stdout.read(), re.MULTILINE)
    rows.append((f"`/healthz` under {count} clients, at most", f"{1000 * slowest:.0f} ms"))
    return [float(word) if "." in word else int(word) for word in counts[1].split()]
