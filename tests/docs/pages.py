"""The code in the pages: where it stands, and how it is run."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.packages import install

from tightaudit.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    place: str
    language: str
    text: str
    title: str | None
    """The file that the block is part of, if it says so."""
    not_run: str | None
    """Why it is not run, from a comment just before it: `<!-- not run: takes an hour -->`."""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") % 2 == 0, page
    return [
        Block(
            place=f"{page.name}:{text.count(chr(10), 0, match.start('text'))}",
            language=match["language"],
            text=match["text"],
            title=match["title"],
            not_run=match["reason"],
        )
        for match in _BLOCK.finditer(text)
    ]


def files_of(page: Path) -> dict[str, str]:
    """The files that a page writes down, piece by piece."""
    files: dict[str, str] = {}
    for block in blocks(page):
        if block.title is not None:
            before = f"{files[block.title]}\n\n" if block.title in files else ""
            files[block.title] = before + block.text
    return files


def install_package_of(page: Path, folder: Path) -> list[str]:
    """Install the package that a page writes down, by its own pyproject.toml; returns its modules."""
    files = files_of(page)
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    install(folder, project["name"], project["entry-points"], files)
    return [name.removesuffix(".py") for name in files]


def run_python(block: Block, namespace: dict[str, Any], placeholder: str) -> None:
    """Run a block in the page's namespace: a session as a test of its output, anything else as it is."""
    if not block.text.lstrip().startswith(">>>"):
        code = re.sub(r"^\.\.\.  #.*$", placeholder, block.text, flags=re.MULTILINE)
        exec(compile(code, block.place, "exec", dont_inherit=True), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.text, namespace, block.place, block.place, 0)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.write, clear_globs=False)
    assert runner.failures == 0, said.getvalue()
    assert runner.tries > 0, block.place
    namespace.update(test.globs)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a shell block or a console session, each with the output shown under it."""
    if block.language == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            yield line, shown
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.strip():
            yield line, ""


def run_command(line: str) -> str:
    """What a command of ours prints; the rest of a pipeline is left to the shell."""
    own, _, rest = line.partition(" | ")
    program, *arguments = shlex.split(own, comments=True)
    assert program == "tightaudit", f"{line}: say with a comment why it is not run"
    printed = io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(printed):
        try:
            main(arguments)
        except SystemExit as stopped:
            code = stopped.code
    assert not code, line
    if not rest:
        return printed.getvalue()
    done = subprocess.run(
        rest, shell=True, input=printed.getvalue(), capture_output=True, text=True, check=True
    )
    return done.stdout
