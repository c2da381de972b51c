"""Refuses to start a worker while a child process imports the module of its tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headrace.errors import InvalidSetting

_loading = False


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Mark that a child is importing the module of its tasks."""
    global _loading  # noqa: PLW0603 - a fact about the process
    _loading = True
    try:
        yield
    finally:
        _loading = False


def refuse_while_loading() -> None:
    """Raise in a child that is importing: each child would start a worker, and that a child."""
    if _loading:
        raise InvalidSetting(
            "a worker is started while a child process imports this module; "
            'put what starts it under `if __name__ == "__main__":`'
        )
