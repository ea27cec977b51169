"""One place per kind where its members are found by name.

Each file of the kind's folder registers what it defines when it is imported: a new claim or method is one
new file and nothing else changes. Other packages bring theirs by entry points. Both are looked at when a
name is asked for that is not known yet, or when all names are, so that importing costs nothing. A file or
a package that cannot be imported is named in a warning and left out.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from typing import Any, Generic, TypeVar

from tightaudit.support.errors import InputError, did_you_mean, printable

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind (`claim`, `method`) and what they stand for.

    `folder` is the package whose files register themselves, `plugins` the group of entry points of others'.

    >>> shapes = Registry[type]("shape")
    >>> @shapes.register
    ... class Square:
    ...     name = "square"
    >>> shapes["square"].__name__, list(shapes)
    ('Square', ['square'])
    """

    def __init__(self, kind: str, *, folder: str | None = None, plugins: str | None = None) -> None:
        self.kind = kind
        self._folder, self._plugins = folder, plugins
        self._members: dict[str, T] = {}
        self._unread = [self._load_folder, self._load_plugins]

    def register(self, member: T) -> T:
        """Enter a class under its `name`; to be used as a decorator."""
        name: str = getattr(member, "name")  # noqa: B009
        if name in self._members and not _redefined(self._members[name], member):
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._members[name] = member
        return member

    def __getitem__(self, name: str) -> T:
        return self.named(name, self.kind)

    def named(self, name: str, argument: str) -> T:
        """The member of that name; `argument` is what an error calls it."""
        while name not in self._members and self._unread:
            self._unread.pop(0)()
        try:
            return self._members[name]
        except KeyError:
            expected = f"one of {', '.join(self)}{did_you_mean(name, self)}"
            raise InputError(argument, name, expected) from None

    def __iter__(self) -> Iterator[str]:
        while self._unread:
            self._unread.pop(0)()
        return iter(sorted(self._members))

    def _load_folder(self) -> None:
        if self._folder is None:
            return
        for module in pkgutil.iter_modules(importlib.import_module(self._folder).__path__):
            path = f"{self._folder}.{module.name}"
            self._try(f"the module {path}", partial(importlib.import_module, path))

    def _load_plugins(self) -> None:
        if self._plugins is None:
            return
        for entry in _entry_points(self._plugins):
            package = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
            what = f"the plug-in {entry.name} = {entry.value}{package}"
            if self._try(what, entry.load) and entry.name not in self._members:
                _warn(what, f"it registers no {self.kind} of that name")

    def _try(self, what: str, load: Callable[[], Any]) -> bool:
        """Import something; if that fails it leaves nothing behind but a warning."""
        before = dict(self._members)
        try:
            load()
        except (Exception, SystemExit) as error:
            self._members = before
            _warn(what, f"{type(error).__name__}: {error}")
            return False
        return True


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
            _warn(f"the list of entry points of {distribution.metadata['Name']}", str(error))
            continue
        for entry in entries:
            # A package can be on the path twice, as when it is installed and run from its sources.
            if (entry.name, entry.value) not in seen:
                seen.add((entry.name, entry.value))
                yield entry


def _warn(what: str, reason: str) -> None:
    warnings.warn(printable(f"{what} cannot be used: {reason}"), RuntimeWarning, stacklevel=2)
