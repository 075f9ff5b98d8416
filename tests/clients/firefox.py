"""Firefox without a window, driven by WebDriver BiDi, which it speaks itself: https://w3c.github.io/webdriver-bidi/"""

import asyncio
import contextlib
import itertools
import re
import subprocess
import time

import aiohttp

import table

SECONDS = 60
"""How long Firefox may take to start, and for one answer."""
LONGEST = 64 << 20
"""Bytes of the longest answer."""
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://127\.0\.0\.1:\d+)")


class Firefox:
    """A running Firefox. Events are taken while an answer is waited for."""

    def __init__(self, socket):
        self.socket = socket
        self.numbers = itertools.count(1)
        self.said, self.requests = [], []

    async def ask(self, method, **params):
        """What Firefox answers to a command."""
        number = next(self.numbers)
        await self.socket.send_json({"id": number, "method": method, "params": params})
        while True:
            found = await asyncio.wait_for(self.socket.receive_json(), SECONDS)
            if found["type"] == "event":
                self.note(found["method"], found["params"])
            elif found["id"] == number:
                assert found["type"] == "success", found
                return found["result"]

    def note(self, method, params):
        if method == "network.beforeRequestSent":
            self.requests.append(params["request"]["url"])
        elif method == "log.entryAdded" and params["level"] in {"error", "warn"}:
            self.said.append(params["text"])

    async def visit(self, url, *scripts, width=1280, height=900):
        """Opens a page in a new tab; what the scripts return, one after the other, and what else was seen."""
        self.said, self.requests = [], []
        tab = (await self.ask("browsingContext.create", type="tab"))["context"]
        await self.ask("browsingContext.setViewport", context=tab, viewport={"width": width, "height": height})
        await self.ask("browsingContext.navigate", context=tab, url=url, wait="complete")
        values = []
        for script in scripts:
            found = await self.ask("script.evaluate", expression=script, target={"context": tab}, awaitPromise=True)
            assert found["type"] == "success", found
            values.append(plain(found["result"]))
        await self.ask("browsingContext.close", context=tab)
        return {"values": values, "said": self.said, "requests": self.requests}


def plain(value):
    """A number, a text, a truth, or a list of these as Python has it."""
    return [plain(item) for item in value["value"]] if value["type"] == "array" else value.get("value")


@contextlib.contextmanager
def process(folder):
    """Runs Firefox with a profile of its own; yields the address at which it listens."""
    profile, output = folder / "profile", folder / "output"
    profile.mkdir()
    command = [table.program("firefox-esr"), "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank"]
    with output.open("wb") as out, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as running:
        try:
            deadline = time.monotonic() + SECONDS
            while not (found := LISTENS.search(output.read_text(errors="replace"))):
                assert running.poll() is None and time.monotonic() < deadline, output.read_text(errors="replace")
                time.sleep(0.1)
            yield found[1]
        finally:
            running.terminate()
            running.wait(SECONDS)


@contextlib.contextmanager
def running(folder):
    """Runs Firefox; yields how to visit a page."""
    with process(folder) as address, contextlib.closing(asyncio.new_event_loop()) as loop:

        async def connect():
            session = aiohttp.ClientSession()
            firefox = Firefox(await session.ws_connect(f"{address}/session", max_msg_size=LONGEST))
            await firefox.ask("session.new", capabilities={})
            await firefox.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
            return session, firefox

        session, firefox = loop.run_until_complete(connect())
        try:
            yield lambda *arguments, **options: loop.run_until_complete(firefox.visit(*arguments, **options))
        finally:
            loop.run_until_complete(session.close())
