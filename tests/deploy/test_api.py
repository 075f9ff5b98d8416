"""The API against its document: every request drawn from it gets an answer that it documents, in the documented form.

Every operation is asked with values that are in the mounts and with others, with what is right and with what is not.
Longer by hand: `ZARRD_EXAMPLES=200`.
"""

import collections
import contextlib
import os
import re
import subprocess

import api
import hypothesis
import processes
import pytest
import replicas
import requests
import schemathesis
from schemathesis import checks

EXAMPLES = int(os.environ.get("ZARRD_EXAMPLES", 12))
ANSWERS = collections.Counter()


class AsPaths(requests.adapters.HTTPAdapter):
    """The document's paths end in names with slashes, for which OpenAPI has no word: as the clients have them."""

    def send(self, request, *arguments, **options):
        path, mark, query = request.url.partition("?")
        request.url = path.replace("%2F", "/") + mark + query
        return super().send(request, *arguments, **options)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with the fixtures in a mount to read, and in one to write to."""
    folder = tmp_path_factory.mktemp("mounts")
    for name, names in [("data", api.FOLDERS), ("work", ["dependent"])]:
        (folder / name).mkdir()
        api.fill(folder / name, names)
    mounts = {
        "DATA": {"URL": folder / "data"},
        "WORK": {"URL": folder / "work", "WRITABLE": "true", "ALLOW_PREFIX_DELETE": "true"},
        "MEMORY": {"URL": "memory://", "WRITABLE": "true", "ALLOW_PREFIX_DELETE": "true"},
    }
    settings = {f"{name}__{key}": str(value) for name, mount in mounts.items() for key, value in mount.items()}
    environment = {f"ZARRD__MOUNTS__{name}": value for name, value in settings.items()}
    log = open(folder / "zarrd.log", "w+")
    with log, subprocess.Popen(
        [os.environ["ZARRD"], "serve", "--listen", "127.0.0.1:0"],
        env=environment | {"ZARRD__LOG__LEVEL": "warn", "ZARRD__LOG__FORMAT": "json"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    ) as process:
        try:
            base = re.fullmatch("zarrd listens on (.*)\n", process.stdout.readline())[1]
            yield base
            assert process.poll() is None, "it has ended"
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(replicas.SECONDS)
            process.kill()


@pytest.fixture(scope="session")
def session():
    with requests.Session() as session:
        session.mount("http://", AsPaths())
        yield session


def is_no_internal_error(context, response, case):
    """A failure is a backend's, or that of what is stored: never the server's own."""
    ANSWERS[response.status_code] += 1
    is_problem = response.headers.get("content-type") == ["application/problem+json"]
    if response.status_code >= 500 and is_problem and response.content:
        assert response.json()["code"] != "internal", response.text


schema = schemathesis.openapi.from_dict(api.amended())


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_every_answer_is_one_that_the_document_describes(case, server, session, record):
    case.call_and_validate(
        base_url=server,
        session=session,
        timeout=4 * processes.SECONDS,
        checks=[
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_headers_conformance,
            checks.response_schema_conformance,
            is_no_internal_error,
        ],
    )
    record("answers held against the API document, by status", dict(sorted(ANSWERS.items())))
