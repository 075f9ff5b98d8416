"""nginx as the bucket: it serves the data set under many names, and logs what is requested."""

import contextlib
import getpass
import subprocess
import time

import processes

CONFIGURATION = """
daemon off;
worker_processes 1;
user {user};
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
events {{ worker_connections 8192; }}
http {{
    log_format requests '$request_method\\t$uri\\t$http_range\\t$status\\t$body_bytes_sent';
    access_log {scratch}/requests.log requests;
    sendfile on;
    keepalive_requests 1000000000;
    client_body_temp_path {scratch}/body;
    proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi;
    server {{
        listen 127.0.0.1:{port};
        add_header Access-Control-Allow-Origin * always;
        location ~ ^/[^/]+/(?<key>.*)$ {{ alias {folder}/$key; }}
    }}
}}
"""


class Bucket:
    """A running bucket."""

    def __init__(self, base, log):
        self.base, self.log = base, log

    def requests(self):
        """Method, path, range, status and bytes of the requests since the last call."""
        lines = [line.split("\t") for line in self.log.read_text().splitlines()]
        with open(self.log, "r+b") as log:
            log.truncate(0)
        return [(method, path, part, int(status), int(size)) for method, path, part, status, size in lines]


@contextlib.contextmanager
def bucket(folder, scratch):
    """Serves the folder as `/NAME/KEY`, for every NAME."""
    scratch.mkdir()
    port = processes.free_port()
    configuration = scratch / "nginx.conf"
    configuration.write_text(
        CONFIGURATION.format(user=getpass.getuser(), scratch=scratch, port=port, folder=folder)
    )
    log = scratch / "requests.log"
    with (
        open(scratch / "nginx.log", "wb") as said,
        subprocess.Popen(["nginx", "-p", scratch, "-c", configuration], stderr=said) as process,
        processes.ended(process),
    ):
        while not log.exists():
            time.sleep(0.05)
            assert process.poll() is None, (scratch / "nginx.log").read_text()
        yield Bucket(f"http://127.0.0.1:{port}", log)
