"""What the tests share: an S3-compatible store with a bucket, and the figures that are printed at the end.

With `ZARRD_FIGURES`, the figures are also written there, for the table of `tests/reliability/run`.
"""

import json
import os

import processes
import pytest
import replicas
import requests

FIGURES = {}


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """A store with the bucket of `config/deploy`."""
    with processes.s3(tmp_path_factory.mktemp("s3")) as endpoint:
        requests.put(f"{endpoint}/{replicas.BUCKET}", timeout=processes.SECONDS).raise_for_status()
        yield endpoint


@pytest.fixture
def record():
    """Records a figure: what was measured, and the result."""
    return FIGURES.__setitem__


def pytest_terminal_summary(terminalreporter):
    for what, figures in FIGURES.items():
        terminalreporter.write_line(f"{what}: {figures}")


def pytest_sessionfinish():
    if path := os.environ.get("ZARRD_FIGURES"):
        with open(path, "w") as file:
            json.dump(FIGURES, file)
