"""One place per kind where its members are found by name.

A module in the kind's package registers what it defines when it is imported, and `discover` imports
them all: a new claim or method is one new file and nothing else changes. Other packages bring theirs by
entry points. Those are looked at when a name is asked for that is not known yet, or when all names are, so
that importing tightaudit stays as quick as it is without them.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Generic, TypeVar

from tightaudit.errors import InputError, printable

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind (`trade-off`, `method`) and what they stand for, in order of registration.

    >>> shapes = Registry[int]("shape")
    >>> _ = shapes.register("square")(4)
    >>> shapes["square"], list(shapes)
    (4, ['square'])
    """

    def __init__(self, kind: str, *, plugins: str | None = None) -> None:
        self.kind = kind
        self._members: dict[str, T] = {}
        self._unread_plugins = plugins
        """The group of entry points that may bring more members, until it has been looked at."""

    def register(self, *names: str) -> Callable[[T], T]:
        """Enter one thing under each of the names."""

        def enter(member: T) -> T:
            for name in names:
                if name in self._members and not _redefined(self._members[name], member):
                    raise ValueError(f"{self.kind} {name!r} is registered twice")
                self._members[name] = member
            return member

        return enter

    def discover(self, package: str, paths: list[str]) -> None:
        """Import every module of a package, so that each can register what it defines."""
        for module in pkgutil.iter_modules(paths):
            importlib.import_module(f"{package}.{module.name}")

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            self._load_plugins()
        try:
            return self._members[name]
        except KeyError:
            raise InputError(self.kind, name, f"one of {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(self._members)

    def _load_plugins(self) -> None:
        """Import what other packages announce; one that fails leaves nothing behind but a warning."""
        if self._unread_plugins is None:
            return
        group, self._unread_plugins = self._unread_plugins, None
        for entry in _entry_points(group):
            before = dict(self._members)
            try:
                entry.load()
            except (Exception, SystemExit) as error:
                self._members = before
                _warn(entry, f"{type(error).__name__}: {error}")
            else:
                if entry.name not in self._members:
                    _warn(entry, f"it registers no {self.kind} of that name")


def _redefined(known: object, member: object) -> bool:
    """Whether the same definition was run again, as in a notebook, or after an import that failed."""
    places = [
        (getattr(each, "__module__", None), getattr(each, "__qualname__", None)) for each in (known, member)
    ]
    return places[0] == places[1] != (None, None)


def _entry_points(group: str) -> Iterator[metadata.EntryPoint]:
    """The entry points of a group, each once, although one package's list cannot be read."""
    seen = set()
    for distribution in metadata.distributions():
        try:
            entries = list(distribution.entry_points.select(group=group))
        except Exception as error:
            name = printable(str(distribution.metadata["Name"]))
            warnings.warn(f"the entry points of {name} cannot be read: {error}", RuntimeWarning, stacklevel=2)
            continue
        for entry in entries:
            # A package can be on the path twice, as when it is installed and run from its sources.
            if (entry.name, entry.value) not in seen:
                seen.add((entry.name, entry.value))
                yield entry


def _warn(entry: metadata.EntryPoint, reason: str) -> None:
    package = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
    text = f"the plug-in {entry.name} = {entry.value}{package} cannot be used: {reason}"
    warnings.warn(printable(text), RuntimeWarning, stacklevel=2)
