"""Whether this process is a child that loads its module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headrace.errors import InvalidSetting

_loading = False


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """While the module of a task is being imported in a child."""
    global _loading  # noqa: PLW0603 - a fact about the process
    _loading = True
    try:
        yield
    finally:
        _loading = False


def refuse_while_loading() -> None:
    """A module that starts a worker when it is imported would start workers without end."""
    if _loading:
        raise InvalidSetting(
            "a worker is started while a child process imports this module; "
            'put what starts it under `if __name__ == "__main__":`'
        )
