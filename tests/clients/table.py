"""The table of clients: what each reads, writes and lists on each backend, printed when the tests are over.

A test that carries `client(name, *verbs)` and has a parameter `backend` counts for those cells of the table. A cell is
`ok` if all of its tests passed, `FAIL` if one did not, and `missing` if the client's program or package is not there.
A test that skips itself has failed, unless that is expected of it: what nobody ran, nobody knows. One that is expected
to fail is `ok` if it does.
"""

import collections
import importlib
import shutil

import pytest

VERBS = ["read", "write", "list"]
BACKENDS = ["local", "memory", "s3"]
NONE = "–"


class Missing(Exception):
    """A client that is not installed."""


def program(name):
    """Where a client's program is."""
    found = shutil.which(name)
    if found is None:
        raise Missing(name)
    return found


def module(name):
    """A client's Python package, if it is not one that all tests need."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(name) from error


def register(config):
    """Makes pytest know the marker and print the table."""
    config.addinivalue_line("markers", "client(name, *verbs): counts for a client's row in the table")
    config.pluginmanager.register(Table(), "clients-table")


class Table:
    """Gathers what each test says of its clients."""

    def __init__(self):
        self.cells = collections.defaultdict(lambda: collections.defaultdict(set))
        """The states of all tests of a cell, by client, then by backend and verb."""

    def pytest_collection_modifyitems(self, items):
        for item in items:
            for mark in item.iter_markers("client"):
                name, *verbs = mark.args
                if not verbs or not set(verbs) <= set(VERBS) or backend_of(item) not in BACKENDS:
                    raise pytest.UsageError(f"{item.nodeid}: a client has verbs of {VERBS}, and its test a backend")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.skipped and not hasattr(report, "wasxfail"):
            expected = item.get_closest_marker("xfail")
            if expected:
                report.wasxfail = expected.kwargs["reason"]
            else:
                report.outcome = "failed"
                report.longrepr = f"skipped: {call.excinfo.value}"
        if report.when == "call" or report.failed:
            is_missing = call.excinfo is not None and call.excinfo.errisinstance(Missing)
            state = "missing" if is_missing else "FAIL" if report.failed else "ok"
            for mark in item.iter_markers("client"):
                name, *verbs = mark.args
                for verb in verbs:
                    self.cells[name][backend_of(item), verb].add(state)
        return report

    def pytest_terminal_summary(self, terminalreporter):
        if not self.cells:
            return
        rows = [["client", *BACKENDS]]
        rows += [[name, *(self.cell(name, backend) for backend in BACKENDS)] for name in sorted(self.cells)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        rows.insert(1, ["-" * width for width in widths])
        terminalreporter.write_line("")
        for row in rows:
            terminalreporter.write_line("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())

    def cell(self, name, backend):
        told = [f"{verb} {self.state(name, backend, verb)}" for verb in VERBS if self.cells[name].get((backend, verb))]
        return " · ".join(told) or NONE

    def state(self, name, backend, verb):
        states = self.cells[name][backend, verb]
        return next(state for state in ["missing", "FAIL", "ok"] if state in states)


def backend_of(item):
    callspec = getattr(item, "callspec", None)
    return callspec and callspec.params.get("backend")
