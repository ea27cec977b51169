"""What the documentation site needs beyond its configuration: sessions of Python shown as such.

Examples are written so that they can be tested, in pages and in docstrings. Readers want neither the marks
that only the test needs, nor `>>>` taken for a quotation.
"""

from __future__ import annotations

import re
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

_SESSION = re.compile(
    r"^(?P<fence>`{3,})(?P<info>[^\n]*)\n(?P<block>.*?)^(?P=fence)$|^(?P<bare>>>> .*?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_BEFORE_FENCES_ARE_READ = 28


def shown(text: str) -> str:
    """Markdown in which every Python session is a fenced block of its own kind.

    >>> shown(">>> 1 + 1").split()
    ['```pycon', '>>>', '1', '+', '1', '```']
    """

    def fenced(match: re.Match[str]) -> str:
        session = match["bare"] or match["block"]
        if not session.startswith(">>> "):
            return match[0]
        session = re.sub(r"^<BLANKLINE>$|  # doctest: \+\w+$", "", session, flags=re.MULTILINE)
        return f"```pycon\n{session.rstrip()}\n```"

    return _SESSION.sub(fenced, text)


class _Sessions(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return shown("\n".join(lines)).split("\n")


class Sessions(Extension):
    """Shows the sessions of a text in this way."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Sessions(md), "sessions", _BEFORE_FENCES_ARE_READ)


def on_config(config: Any) -> Any:
    """Let pages and docstrings be read with the extension above."""
    config.markdown_extensions.append(Sessions())
    return config
