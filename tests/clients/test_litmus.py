"""litmus, a suite of tests of WebDAV servers, on a mount at the root.

A prefix of a store exists only while there is a key below it. The tests that a store cannot pass for this reason are listed
below with the reason, and must fail.
"""

import re
import subprocess

import pytest

import table

SUITES = {"basic": 16, "copymove": 13, "http": 4}
"""How many tests are in each."""

CANNOT = {
    ("basic", "put_no_parent"): "prefixes are implied: nothing needs to be made before a key below it",
    ("basic", "delete_null"): "to erase a key that is not there is no failure of a store",
    ("basic", "mkcol_again"): "a prefix without a key is not there, so it can be made again",
    ("basic", "mkcol_no_parent"): "prefixes are implied",
    ("copymove", "copy_nodestcoll"): "prefixes are implied",
    ("copymove", "copy_shallow"): "a prefix without its keys is nothing to be copied",
}


@pytest.mark.client("litmus", "read", "write")
@pytest.mark.parametrize("suite", SUITES)
def test_litmus_passes_but_for_the_tests_that_no_store_can_pass(server, empty, tmp_path, suite):
    command = [table.program("litmus"), "--keep-going", server.root(empty)]
    output = subprocess.run(
        command, cwd=tmp_path, env={"TESTS": suite}, capture_output=True, timeout=60, text=True
    ).stdout
    failed = {name for name in re.findall(r"\d+\. (\w+)\.* FAIL", output)}
    assert failed == {name for where, name in CANNOT if where == suite}, output
    passed = SUITES[suite] - len(failed)
    assert f"of {SUITES[suite]} tests run: {passed} passed, {len(failed)} failed" in output, output
