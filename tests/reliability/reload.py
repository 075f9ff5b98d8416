"""S6, the configuration read again twenty times a second, with mounts that come, go, change and are broken, under slices and
uploads: no request to a mount that stays fails, those to others get their value or 404, and nothing is left behind."""

import collections
import contextlib
import json
import pathlib
import random
import signal
import socket
import tempfile
import threading
import time

import data
from server import SECONDS, clients, mib, zarrd

A_SECOND = 20
NAMES = [f"m{n}" for n in range(8)]
BYTES = 20_000
GROWTH_BYTES = 24 << 20
"""That is not taken for a leak: caches fill up, and the allocator keeps a little."""
SETTINGS = {
    "CACHE__DECODED_SIZE": 16 << 20, "CACHE__VALUE_SIZE": 8 << 20, "HTTP__INFLIGHT_SIZE": 64 << 20,
    "FETCH__INFLIGHT_SIZE": 64 << 20,
}
BROKEN = [
    "[mounts.x", "[mounts.x]\nurl = 'nowhere-at-all/x'\n", "[server]\nlisten = 5\n", "[mounts.x]\nurl = 's3://'\n", "\0",
    "[mounts.x]\nurl = '/'\nrights = 'all'\n", "[access.tokens.t]\nsha256 = 'x'\n", "[limits]\nrank = 0\n",
]


def run(long):
    seconds = 180 if long else 5
    with tempfile.TemporaryDirectory() as name, silent() as unresponsive:
        folder = pathlib.Path(name)
        answers = {path.replace("/m/", "/stays/"): value for path, value in data.volume(folder / "stays", "volume", 4).items()}
        (folder / "written").mkdir()
        for name in NAMES:
            for number in (1, 2):
                data.write(folder / f"{name}-{number}", "k", str(number))
        file = folder / "zarrd.toml"
        configure = Configurations(folder, unresponsive, file)
        configure.write(configure.whole([]))
        log = folder / "log"
        with log.open("w") as errors, zarrd("--config", str(file), errors=errors, LOG__LEVEL="error", **SETTINGS) as server:
            over, counts, seen, failed = threading.Event(), collections.Counter(), set(), []
            others = [
                threading.Thread(target=upload, args=(server, n, over, counts, failed)) for n in range(2)
            ] + [threading.Thread(target=ask, args=(server, n, over, counts, failed)) for n in range(2)]
            others.append(threading.Thread(target=list_mounts, args=(server, over, seen, failed)))
            with clients(server, answers, 2) as good:
                for thread in others:
                    thread.start()
                reloads = configure.storm(server, seconds / 3)
                first = server.resident()
                reloads += configure.storm(server, seconds * 2 / 3)
                over.set()
                for thread in others:
                    thread.join()
            # What was in the file last is in effect in the end.
            for names in (NAMES, []):
                configure.write(configure.whole([configure.other(name) for name in names]))
                server.process.send_signal(signal.SIGHUP)
                until(lambda: mounts(server) == {"stays", "written", *names}, "the last configuration is not in effect")
            after = server.resident()
            until(lambda: server.descriptors() <= 40, f"{server.descriptors()} descriptors are open")
            assert not good.failed and not failed, (good.failed[:3], failed[:3])
            assert len(seen) > reloads // 20, f"{len(seen)} configurations were seen of {reloads}"
            assert after <= first + GROWTH_BYTES, f"{mib(first)}, and {mib(after)} in the end"
            for path, expected in answers.items():
                assert server.get(path) == (200, expected), path
            # None was refused but those that are broken, though what they open may still be in use.
            refused = [line for line in log.read_text().splitlines() if "what was in effect stays" in line]
            assert len(refused) <= configure.bad, [line for line in refused if "cannot be opened" in line][:3]
            return [(
                f"SIGHUP {A_SECOND} times a second, {seconds} s",
                f"{reloads:,} configurations, {configure.bad:,} of them broken, {len(seen):,} seen in effect; "
                f"{len(good.seconds):,} slices and values and {counts['uploads']:,} uploads to mounts that stay: 0 failed; "
                f"{counts[200]:,} answers of mounts that change, {counts[404]:,} that there is none, 0 others; "
                f"{server.descriptors()} descriptors in the end; RSS {mib(first)}, {mib(after)} in the end",
            )]


class Configurations:
    """Configurations of mounts that stay and of others."""

    def __init__(self, folder, unresponsive, file):
        self.folder, self.unresponsive, self.file = folder, unresponsive, file
        self.dice = random.Random(1)
        self.bad = 0

    def whole(self, others):
        stays = f"[mounts.stays]\nurl = '{self.folder}/stays'\n"
        written = f"[mounts.written]\nurl = '{self.folder}/written'\nwritable = true\n"
        return stays + written + "".join(others)

    def other(self, name):
        url = self.dice.choice([f"{self.folder}/{name}-1", f"{self.folder}/{name}-2"])
        writable = "writable = true\n"
        more = self.dice.choice(["", writable, f"{writable}options.durability = 'rename'\n", "consolidated = true\n"])
        return f"[mounts.{name}]\nurl = '{url}'\n{more}"

    def some(self):
        others = [self.other(name) for name in self.dice.sample(NAMES, self.dice.randrange(1, len(NAMES)))]
        if self.dice.random() < 0.2:
            # A backend that never answers.
            others.append(f"[mounts.far]\nurl = '{self.unresponsive}/{self.dice.randrange(100)}'\n")
        if self.dice.random() < 0.25:
            self.bad += 1
            others.append(self.dice.choice(BROKEN))
        return self.whole(others)

    def write(self, text):
        """At once: half of a configuration is another configuration."""
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def storm(self, server, seconds):
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            self.write(self.some())
            server.process.send_signal(signal.SIGHUP)
            count += 1
            time.sleep(1 / A_SECOND)
        return count


def mounts(server):
    """The mounts that there are, by what the server says."""
    return {mount["name"] for mount in json.loads(server.get("/v1/mounts")[1])["mounts"]}


def list_mounts(server, over, seen, failed):
    while not over.is_set():
        found = mounts(server)
        seen.add(frozenset(found))
        if not {"stays", "written"} <= found:
            failed.append(f"mounts that stay are gone: {found}")


def ask(server, n, over, counts, failed):
    """Asks mounts that change for their one value, over a connection that stays."""
    with contextlib.closing(server.connect()) as connection:
        while not over.is_set():
            n += 1
            connection.request("GET", f"/store/{NAMES[n % len(NAMES)]}/k")
            answer = connection.getresponse()
            body = answer.read()
            counts[answer.status] += 1
            if answer.status != 404 and (answer.status, body) not in ((200, b"1"), (200, b"2")):
                failed.append(f"{answer.status} {body[:100]}")


def upload(server, n, over, counts, failed):
    """Writes a value and reads it, again and again."""
    dice = random.Random(n)
    with contextlib.closing(server.connect()) as connection:
        while not over.is_set():
            value = dice.randbytes(BYTES)
            for method, sent, good in [("PUT", value, (200, 201, 204)), ("GET", None, (200,))]:
                connection.request(method, f"/store/written/{n}", sent)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status not in good or (method == "GET" and body != value):
                    failed.append(f"{method}: {answer.status} {body[:100]}")
            counts["uploads"] += 1


@contextlib.contextmanager
def silent():
    """A server that takes connections and says nothing; its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def until(holds, otherwise):
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)
