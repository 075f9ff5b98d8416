"""nginx as the bucket: it serves the data set under many names, and logs what is requested."""

import contextlib

import processes


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
    log = scratch / "requests.log"
    logged = "log_format requests '$request_method\\t$uri\\t$http_range\\t$status\\t$body_bytes_sent';"
    served = f"""
        add_header Access-Control-Allow-Origin * always;
        location ~ ^/[^/]+/(?<key>.*)$ {{ alias {folder}/$key; }}
    """
    with processes.nginx_with(scratch, served, f"{logged} access_log {log} requests;") as server:
        yield Bucket(server.base, log)
