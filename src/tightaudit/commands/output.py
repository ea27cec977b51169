"""What several commands print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tightaudit.errors import InputError
from tightaudit.game import Evidence
from tightaudit.pvalues.base import Method


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def torch_extra(command: str) -> Iterator[None]:
    """What is imported inside needs the extra `torch`, which not everyone has."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            command, f"no module {error.name}", "the extra: pip install 'tightaudit[torch]'"
        ) from None


def print_notes(method: Method, evidence: Evidence) -> None:
    if method.assumes.caveat is not None:
        print(f"caution: {method.name} {method.assumes.caveat}")
    if (remark := method.remark(evidence)) is not None:
        print(f"note: {remark}")


def print_json(fields: dict[str, Any]) -> None:
    print(json.dumps(fields, allow_nan=False))
