"""Clients that go on asking while something happens to the replicas: readers that know every byte, and writers that read
back what they wrote."""

import contextlib
import random
import threading
import time

import requests

SECONDS = 60


class Load:
    """Readers of known answers and writers of keys of their own, through one address, until it is over."""

    def __init__(self, base, answers, readers, writers):
        self.base = base
        self.answers = list(answers.items())
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.counts = {"reads": 0, "writes": 0, "unknown": 0}
        self.failed = []
        self.threads = [threading.Thread(target=self.read, args=(n,)) for n in range(readers)]
        self.threads += [threading.Thread(target=self.write, args=(n,)) for n in range(writers)]

    def count(self, what, failure=None):
        with self.lock:
            self.counts[what] += 1
            if failure:
                self.failed.append(failure)

    def read(self, n):
        dice = random.Random(n)
        with requests.Session() as session:
            while not self.over.is_set():
                path, expected = dice.choice(self.answers)
                self.count("reads", wrong(session, self.base + path, expected))

    def write(self, n):
        """Puts without condition may be made again; one whose answer was lost left the value before or this one."""
        with requests.Session() as session:
            url = f"{self.base}/store/data/written/{n}"
            held = set()
            number = 0
            while not self.over.is_set():
                number += 1
                value = b"%d of %d," % (number, n) * 500
                try:
                    status = session.put(url, data=value, timeout=SECONDS).status_code
                except requests.RequestException as error:
                    return self.count("writes", f"PUT: {error}")
                known = status in (201, 204)
                held = {value} if known else held | {value, None}
                self.count("writes" if known else "unknown", None if known or status == 502 else f"PUT: {status}")
                try:
                    answer = session.get(url, timeout=SECONDS)
                except requests.RequestException as error:
                    self.count("reads", f"GET of what was written: {error}")
                    continue
                found = answer.content if answer.status_code == 200 else None
                right = found in held and answer.status_code in (200, 404)
                self.count("reads", None if right else f"GET of what was written: {answer.status_code}")


def wrong(session, url, expected):
    """What is wrong with an answer, if anything is."""
    try:
        answer = session.get(url, timeout=SECONDS)
    except requests.RequestException as error:
        return f"{url}: {error}"
    if answer.status_code != 200:
        return f"{url}: {answer.status_code} {answer.content[:200]}"
    return None if answer.content == expected else f"{url}: other bytes"


@contextlib.contextmanager
def load(base, answers, readers=4, writers=2):
    """Goes on as long as the block does; yields what counts."""
    running = Load(base, answers, readers, writers)
    for thread in running.threads:
        thread.start()
    try:
        yield running
        # Some more, when all is as it was.
        time.sleep(0.5)
    finally:
        running.over.set()
        for thread in running.threads:
            thread.join()
