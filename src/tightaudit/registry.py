"""One place per kind where its members are found by name.

A module in the kind's package registers what it defines when it is imported, and `discover` imports
them all: a new claim or method is one new file and nothing else changes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from tightaudit.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind (`trade-off`, `method`) and what they stand for, in order of registration.

    >>> shapes = Registry[int]("shape")
    >>> _ = shapes.register("square")(4)
    >>> shapes["square"], list(shapes)
    (4, ['square'])
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._members: dict[str, T] = {}

    def register(self, *names: str) -> Callable[[T], T]:
        """Enter one thing under each of the names."""

        def enter(member: T) -> T:
            for name in names:
                if name in self._members:
                    raise ValueError(f"{self.kind} {name!r} is registered twice")
                self._members[name] = member
            return member

        return enter

    def discover(self, package: str, paths: list[str]) -> None:
        """Import every module of a package, so that each can register what it defines."""
        for module in pkgutil.iter_modules(paths):
            importlib.import_module(f"{package}.{module.name}")

    def __getitem__(self, name: str) -> T:
        try:
            return self._members[name]
        except KeyError:
            raise InputError(self.kind, name, f"one of {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)
