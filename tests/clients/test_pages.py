"""What the pages name exists: links, settings, metrics. What the book lists is all that there is."""

import re

import pytest
import requests

import pages
import processes

DEFAULTS = (pages.ROOT / "config" / "default.toml").read_text()


def settings():
    """Every setting that the default configuration has or describes, such as `server.listen`."""
    section, found = "", set()
    for line in DEFAULTS.splitlines():
        line = line.removeprefix("# ")
        if heading := re.fullmatch(r"\[([\w.]+)\]", line):
            section = heading[1]
        elif setting := re.match(r"(\w+) = ", line):
            found.add(f"{section}.{setting[1]}")
    return found


SECTIONS = {name.split(".")[0] for name in settings()} - {"", "mounts"}
NAMED = re.compile(rf"`((?:{'|'.join(sorted(SECTIONS))})\.[a-z0-9_.]+)(?: =[^`]*)?`")


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_every_link_has_a_target(page):
    for link in pages.links(page):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link}: there is no such file"
        assert target.suffix != ".md" or page.name == "README.md" or target.is_relative_to(pages.BOOK), (
            f"{link}: outside of the book"
        )
        assert not anchor or anchor in pages.anchors(target), f"{link}: there is no such heading"


def test_links_and_anchors_of_a_page_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A *b*: `c`, d\n\n[a](#a-b-c-d) [none](#none) `[code](none)`\n\n```sh\n# [no](link)\n```\n")
    assert pages.links(page) == ["#a-b-c-d", "#none"] and pages.anchors(page) == {"a-b-c-d"}


def test_the_summary_lists_every_page():
    listed = {(pages.BOOK / link).resolve() for link in pages.links(pages.BOOK / "SUMMARY.md")}
    assert listed == {page.resolve() for page in pages.PAGES[1:]} - {pages.BOOK / "SUMMARY.md"}


def test_the_settings_that_are_named_exist():
    assert len(settings()) > 100 and {"server.listen", "access.tokens.NAME.sha256", "mounts.NAME.url"} <= settings()
    named = {setting for page in pages.PAGES for setting in NAMED.findall(pages.prose(page))}
    assert len(named) > 20
    # A table of settings may be named as a whole.
    known = settings() | {name.rsplit(".", depth)[0] for name in settings() for depth in range(1, name.count(".") + 1)}
    assert not named - known, named - known


def test_the_options_of_mounts_that_are_named_exist():
    named = {name for page in pages.PAGES for name in re.findall(r"`options\.(\w+)`", pages.prose(page))}
    assert named and not {f"mounts.NAME.options.{name}" for name in named} - settings()


def test_the_metrics_that_are_named_exist(tmp_path):
    configuration = tmp_path / "zarrd.toml"
    configuration.write_text(f"[cache.disk]\npath = '{tmp_path / 'cache'}'\n")
    with processes.zarrd("--demo", "--config", str(configuration), public_metrics=True) as running:
        text = requests.get(f"{running.base}/metrics", timeout=processes.SECONDS).text
    metrics = re.findall(r"^# TYPE (\w+) ", text, flags=re.MULTILINE)
    named = {name for page in pages.PAGES for name in re.findall(r"`((?:zarrd|process)_\w+)(?:…)?`", page.read_text())}
    assert named and metrics
    for name in named:
        # A counter is declared without the end of its name.
        known = any(metric.startswith(name.removesuffix("_total")) for metric in metrics)
        assert known, f"{name}: there is no such metric"


def test_the_readme_is_short():
    assert len((pages.ROOT / "README.md").read_text().splitlines()) <= 250
