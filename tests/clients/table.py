"""The table of clients: what each reads, writes and lists on each backend, printed when the tests are over, and held
against the one in docs/src/clients.md.

A test that carries `client(name, *verbs)` and has a parameter `backend` counts for those cells of the table. A cell is
`ok` if all of its tests passed, `FAIL` if one did not, and `missing` if the client's program or package is not there.
A test that skips itself has failed, unless that is expected of it, because a skipped test proves nothing. One that is
expected to fail is `ok` if it does.

A test that carries `cannot(name, verb, what)` sees that a client, as it is published, does not do that. The page says so.
Once the whole suite has passed, the table of the page must be the one that it gives; `UPDATE=1` writes it there.
"""

import collections
import importlib
import os
import pathlib
import shutil

import pytest

VERBS = ["read", "write", "list"]
BACKENDS = ["local", "memory", "s3"]
NONE = "–"
FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs" / "src" / "clients.md"
MARKS = "<!-- clients -->\n", "<!-- /clients -->\n"

SUITES = {"litmus", "zarr-python + all routes", "icechunk-js style"}
"""What no user has: it has no row in the page. Nor has a client that the tests have changed."""
PATCHED = " (patched)"


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
    """Makes pytest know the marker and print the table.

    Tests may run in several processes (pytest-xdist). What a test says of its clients is in its report, which the process
    that prints the table gets from all of them.
    """
    config.addinivalue_line("markers", "client(name, *verbs): counts for a client's row in the table")
    config.addinivalue_line("markers", "cannot(name, verb, what): a client, as it is published, does not do that")
    config.pluginmanager.register(Table(config), "clients-table")


class Table:
    """Gathers what each test says of its clients."""

    def __init__(self, config):
        asked = [pathlib.Path(argument).resolve() for argument in config.args]
        self.is_whole = asked == [FOLDER] and not config.option.keyword and not config.option.markexpr
        self.limits = collections.defaultdict(set)
        """What each client does not do, by verb."""
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
        # Lists of texts: a report of another process has passed as plain data.
        report.limits = [list(mark.args) for mark in item.iter_markers("cannot")]
        report.cells = []
        if report.when == "call" or report.failed:
            is_missing = call.excinfo is not None and call.excinfo.errisinstance(Missing)
            state = "missing" if is_missing else "FAIL" if report.failed else "ok"
            for mark in item.iter_markers("client"):
                name, *verbs = mark.args
                report.cells += [[name, backend_of(item), verb, state] for verb in verbs]
        return report

    def pytest_runtest_logreport(self, report):
        for name, verb, what in report.limits:
            self.limits[name, verb].add(what)
        for name, backend, verb, state in report.cells:
            self.cells[name][backend, verb].add(state)

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

    def pytest_sessionfinish(self, session, exitstatus):
        if not self.is_whole or exitstatus != 0 or hasattr(session.config, "workerinput"):
            return
        before, rest = PAGE.read_text().split(MARKS[0])
        table, after = rest.split(MARKS[1])
        if table == self.markdown():
            return
        if os.environ.get("UPDATE"):
            PAGE.write_text(before + MARKS[0] + self.markdown() + MARKS[1] + after)
        else:
            print(f"\nThe table in {PAGE} is not what the tests saw; UPDATE=1 tests/clients/run writes this one:")
            print(self.markdown())
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def markdown(self):
        """The table of what is published, for the page."""
        lines = ["| client | reads | writes | lists |", "|---|---|---|---|"]
        for name in sorted(self.cells, key=str.lower):
            if name not in SUITES and not name.endswith(PATCHED):
                lines.append(f"| {' | '.join([name, *(self.summary(name, verb) for verb in VERBS)])} |")
        return "".join(line + "\n" for line in lines)

    def summary(self, name, verb):
        tried = all(self.cells[name].get((backend, verb)) == {"ok"} for backend in BACKENDS)
        limits = "; ".join(sorted(self.limits[name, verb]))
        if tried:
            return f"yes; not: {limits}" if limits else "yes"
        return f"no: {limits}" if limits else NONE

    def cell(self, name, backend):
        states = [f"{verb} {self.state(name, backend, verb)}" for verb in VERBS if self.cells[name].get((backend, verb))]
        return " · ".join(states) or NONE

    def state(self, name, backend, verb):
        states = self.cells[name][backend, verb]
        return next(state for state in ["missing", "FAIL", "ok"] if state in states)


def backend_of(item):
    callspec = getattr(item, "callspec", None)
    return callspec and callspec.params.get("backend")
