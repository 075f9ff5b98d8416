"""S2 and S7, the keys of issuers of tokens: fetched from servers that are silent, endless, long, in circles, garbage or
broken, while clients send made-up tokens that name unknown keys. Good tokens stay valid, and no issuer is asked for keys
more often than once a minute."""

import base64
import collections
import contextlib
import hashlib
import http.server
import json
import pathlib
import secrets
import subprocess
import tempfile
import threading
import time

import data
from server import SECONDS, Clients, clients, mib, zarrd

ATTACKERS = "127.0.0.3"
AUDIENCE = "zarrd"
BAD = ["silent", "slow", "endless", "long", "circle", "redirect", "garbage", "deep", "empty", "broken", "gone"]
"""Of the issuers, by what their keys' servers do; and `good`, whose keys change every second but for one."""
MOST_BYTES = 256 << 10
"""Of a set of keys that is read."""
PAUSE = 60
"""Seconds between two times that keys are asked for."""


def run(long):
    seconds = 190 if long else 6
    with tempfile.TemporaryDirectory() as name, Issuers(pathlib.Path(name)) as issuers:
        folder = pathlib.Path(name) / "served"
        data.write(folder, "small", "0123456789")
        answers = {"/store/m/small": b"0123456789"}
        with zarrd(f"m={folder}", **issuers.settings()) as server:
            good = {"Authorization": f"Bearer {issuers.token('good')}"}
            with clients(server, answers, 1, headers=good) as alone:
                time.sleep(1)
            statuses, over = collections.Counter(), threading.Event()
            flood = [
                threading.Thread(target=made_up, args=(server, issuers, issuer, address, over, statuses))
                for issuer in ["good", "good", *BAD] for address in (ATTACKERS, Clients.ADDRESS)
            ]
            for thread in flood:
                thread.start()
            # One from among those who attack, and others, each with a token of its own that was not seen before.
            with clients(server, answers, 2, headers=good) as among:
                fresh = ask_afresh(server, issuers, seconds)
            over.set()
            for thread in flood:
                thread.join()
            resident, bound = server.resident("VmHWM"), server.bound + 64 * server.connection
        assert not alone.failed and not among.failed, (alone.failed[:3], among.failed[:3])
        # Unknown where its issuer is, and bad where that is known.
        assert statuses.keys() <= {401, 429, 503} and statuses[401] and statuses[503], statuses
        most = 2 + seconds // PAUSE
        assert all(1 <= issuers.asked[name] <= most for name in ["good", *BAD]), issuers.asked
        assert not issuers.led, "a redirect was followed"
        assert max(issuers.sent.values()) <= 64 * MOST_BYTES, issuers.sent
        assert resident <= bound, f"{mib(resident)} of {mib(bound)}"
        return [(
            f"keys of {len(BAD) + 1} issuers, all but one bad, and made-up tokens, {seconds} s",
            f"{sum(statuses.values()):,} made-up tokens, answered {dict(sorted(statuses.items()))}; asked for keys "
            f"{max(issuers.asked.values())} times each at most; {len(among.seconds):,} requests of a good token from the same "
            f"address, p99 {among.p99():.0f} ms (alone {alone.p99():.0f}), and {fresh:,} good tokens seen for the first time, "
            f"0 refused; RSS {mib(resident)}",
        )]


def made_up(server, issuers, issuer, address, over, statuses):
    """Asks with tokens that name unknown keys, with a short pause after each."""
    with contextlib.closing(server.connect(address)) as connection:
        while not over.is_set():
            token = issuers.made_up(issuer)
            with contextlib.suppress(OSError):
                connection.request("GET", "/store/m/small", headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1
            time.sleep(0.02)


def ask_afresh(server, issuers, seconds):
    """Asks with one new good token after the other, from another address; how many there were."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.closing(server.connect("127.0.0.4")) as connection:
            token = issuers.token("good")
            connection.request("GET", "/store/m/small", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"0123456789"), answer.status
        count += 1
        time.sleep(0.05)
    return count


class Issuers:
    """A server of keys, and the one key that is good for all of them."""

    def __init__(self, folder):
        self.key = folder / "key"
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        printed = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True)
        modulus = bytes.fromhex(printed.stdout.decode().strip().partition("=")[2])
        self.jwk = {"kty": "RSA", "kid": "good", "n": text(modulus), "e": "AQAB", "alg": "RS256"}
        self.asked, self.sent, self.led = collections.Counter(), collections.Counter(), 0
        self.over = threading.Event()

    def __enter__(self):
        issuers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with contextlib.suppress(OSError):
                    issuers.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def settings(self):
        found = {}
        for name in ["good", *BAD]:
            found |= {
                f"ACCESS__ISSUERS__{name.upper()}__{key}": value for key, value in [
                    ("ISSUER", f"{self.url}/{name}"), ("AUDIENCE", AUDIENCE), ("ALGORITHMS", '["RS256"]'),
                    ("JWKS_URL", f"{self.url}/{name}/keys"), ("GRANTS", '[{ mount = "m", scopes = ["read"] }]'),
                ]
            }
        return found

    def set(self, *keys):
        return json.dumps({"keys": [*keys, self.jwk]}).encode()

    def answer(self, request):
        """Answers as the issuer does that is asked for."""
        _, name, what = request.path.split("/")
        if what == "led":
            self.led += 1
        else:
            self.asked[name] += 1
        if name == "silent":
            self.over.wait(SECONDS)
            return
        if name == "gone":
            request.connection.close()
            return
        if name in ("circle", "redirect"):
            request.send_response(302)
            there = f"/{name}/keys" if name == "circle" else "/good/led"
            request.send_header("Location", self.url + there)
            request.end_headers()
            return
        if name == "broken":
            request.send_error(500)
            return
        # Another key each second, beside the one that stays.
        turn = hashlib.sha256(str(int(time.time())).encode()).hexdigest()
        other = self.jwk | {"kid": turn}
        bodies = {"garbage": secrets.token_bytes(5000), "deep": b"[" * 100_000, "empty": b'{"keys": []}'}
        body = bodies.get(name, self.set(other))
        request.send_response(200)
        length = {"long": 1 << 40, "endless": None}.get(name, len(body))
        if length is not None:
            request.send_header("Content-Length", str(length))
        request.end_headers()
        if name == "slow":
            for place in range(len(body)):
                if self.over.wait(0.2):
                    return
                request.wfile.write(body[place:place + 1])
        elif name in ("long", "endless"):
            while not self.over.is_set():
                request.wfile.write(b" " * (64 << 10))
                self.sent[name] += 64 << 10
        else:
            request.wfile.write(body)

    def made_up(self, issuer):
        """A token that is as it must be but for its key and its signature."""
        return f"{self.head(issuer, secrets.token_hex(8))}.{text(secrets.token_bytes(256))}"

    def token(self, issuer):
        """A good token, unlike all others."""
        signed = self.head(issuer, "good")
        command = ["openssl", "dgst", "-sha256", "-sign", self.key]
        signature = subprocess.run(command, input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{text(signature)}"

    def head(self, issuer, key):
        claims = {
            "iss": f"{self.url}/{issuer}", "aud": AUDIENCE, "exp": int(time.time()) + 3600, "sub": "x",
            "jti": secrets.token_hex(8),
        }
        parts = [{"alg": "RS256", "kid": key, "typ": "JWT"}, claims]
        return ".".join(text(json.dumps(part).encode()) for part in parts)


def text(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
