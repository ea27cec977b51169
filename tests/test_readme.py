"""The README's own code, run as it stands."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tightaudit.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_python_examples() -> None:
    examples = blocks("python")
    assert examples
    for text in examples:
        test = doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        assert runner.failures == 0
        assert runner.tries >= 3


def test_commands_print_what_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (session,) = blocks("console")
    commands = re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]
    assert len(commands) == 2
    for command in commands:
        line, expected = command.split("\n", 1)
        program, *arguments = shlex.split(line)
        assert program == "tightaudit"
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert not stopped.value.code
        assert capsys.readouterr().out.split() == expected.split()


def test_audit_table() -> None:
    """The same run as in docs/audit-your-run.md, whose own output is tested there."""
    _, table = blocks("text")
    page = (Path(__file__).parents[1] / "docs" / "audit-your-run.md").read_text(encoding="utf-8")
    shown = [" ".join(line.split()) for line in page.splitlines()]
    for line in table.splitlines():
        assert " ".join(line.removesuffix(" …").split()) in " ".join(shown)
