"""What several commands print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tightaudit.cli.streams import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tightaudit.methods.base import Test


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Counted(MofNCompleteColumn):
        """How many of how many, once it is known how many there are."""

        def render(self, task: Task) -> Text:
            return Text("") if task.total is None else super().render(task)

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), Counted(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def warn(text: str) -> None:
    """Say what a reader of the result should mind."""
    say(f"tightaudit: warning: {text}")


def print_view(*parts: RenderableType) -> None:
    """Print tables and sentences, in colours where the terminal has them."""
    from rich.console import Console

    console = Console(highlight=False)
    for part in parts:
        console.print(part)


def print_notes(test: Test) -> None:
    """What a reader of a test's result has to know."""
    if test.method.assumes.caveat is not None:
        print(f"caution: {test.method.name} {test.method.assumes.caveat}")
    if test.remark is not None:
        print(f"note: {test.remark}")


def print_json(fields: dict[str, Any]) -> None:
    """One JSON object on one line."""
    print(json.dumps(fields, allow_nan=False))
