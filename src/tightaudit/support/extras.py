"""The one way in which an optional package is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from tightaudit.support.errors import InputError


class MissingExtraError(InputError):
    """Something was asked for that needs a package that is not installed."""

    __module__ = __name__

    def __str__(self) -> str:
        return f"{self.argument} needs {self.value}: {self.expected}"


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Imports made inside need an extra that not everyone has installed.

    `what` is the thing that cannot be done without it.

    >>> with needs("io", "a Parquet file"):
    ...     import a_package_nobody_has
    Traceback (most recent call last):
        ...
    tightaudit.support.extras.MissingExtraError: a Parquet file needs a_package_nobody_has: pip install ...
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(what, error.name, f"pip install 'tightaudit[{extra}]'") from None
