"""The pages that people read: README.md and those of the book, with their blocks of code and their links.

A block of a language that can be run is run (`test_recipes.py`), unless a comment on the line before it gives the reason
why not:

    <!-- not run: needs a cluster -->

A block of text below the comment `<!-- output -->` is what the block before it prints.
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs" / "src"
PAGES = [ROOT / "README.md", *sorted(BOOK.rglob("*.md"))]

RUN = {"sh", "python", "js", "toml"}
"""What is run."""
SHOWN = {"text", "nginx"}
"""What is there to be read."""

NOT_RUN = re.compile(r"<!-- not run: (.*) -->")
OUTPUT = "<!-- output -->"
INCLUDE = re.compile(r"^\{\{#include (\S+)\}\}$", re.MULTILINE)


@dataclasses.dataclass
class Block:
    """A fenced block of code: where it begins, and what is in it."""

    page: pathlib.Path
    line: int
    language: str
    text: str
    reason: str | None
    """Why it is not run."""
    is_output: bool
    """Whether it is what the block before it prints."""
    output: str | None = None
    """What it prints, where the page shows that."""

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page):
    """The blocks of a page, with the files that they include."""
    blocks, begun, before = [], None, ""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if begun is None and line.lstrip().startswith("```"):
            reason = NOT_RUN.fullmatch(before)
            begun = Block(page, number, line.strip("` "), "", reason and reason[1], before == OUTPUT)
            assert line.startswith("```"), f"{begun}: a block that is indented is not seen here"
        elif begun is None:
            before = line
        elif line == "```":
            begun.text = INCLUDE.sub(lambda include: (page.parent / include[1]).read_text(), begun.text)
            if begun.is_output:
                blocks[-1].output = begun.text
            blocks.append(begun)
            begun, before = None, ""
        else:
            begun.text += line + "\n"
    assert begun is None, f"{begun}: the block does not end"
    return blocks


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def run(language):
    """The blocks of a language that are run."""
    return [block for block in BLOCKS if block.language == language and block.reason is None]


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links(page):
    """Where the links of a page lead."""
    return re.findall(r"(?<!!)\[[^\]\[]*\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "`code`", prose(page)))


def anchors(page):
    """The anchors of a page's headings, as mdbook and forges make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}
