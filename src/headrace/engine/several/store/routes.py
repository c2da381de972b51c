"""Which store a queue belongs to: by its name, or by the beginning of its name."""

from __future__ import annotations

from collections.abc import Collection

from headrace.errors import InvalidName, InvalidSetting
from headrace.model.names import check_name

DEFAULT = ""
"""The pattern of the store of HEADRACE_URL, where all other queues are: no queue has this name."""
ANY = "*"
# Names of queues may be made by programs: no more than these are remembered.
MOST_REMEMBERED = 10_000


class Routes:
    """Finds the pattern of a queue: its whole name, else the longest beginning of it; else
    `DEFAULT`.
    """

    def __init__(self, patterns: Collection[str]) -> None:
        for pattern in patterns:
            _check(pattern)
        self._whole = {each for each in patterns if not each.endswith(ANY)}
        begins = [each.removesuffix(ANY) for each in patterns if each.endswith(ANY)]
        self._begins = sorted(begins, key=len, reverse=True)
        self._known: dict[str, str] = {}

    def pattern_of(self, queue: str) -> str:
        """Return the pattern that decides about this queue."""
        found = self._known.get(queue)
        if found is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            found = self._known[queue] = self._find(queue)
        return found

    def _find(self, queue: str) -> str:
        if queue in self._whole:
            return queue
        for begin in self._begins:
            if queue.startswith(begin):
                return begin + ANY
        return DEFAULT


def _check(pattern: str) -> None:
    name = pattern.removesuffix(ANY)
    if "/" in name:  # an address: it may have a password in it
        raise InvalidSetting(
            "stores has an address where the name of a queue has to be; write "
            "{'emails': 'postgresql://host/db'}"
        )
    if not name:
        raise InvalidSetting(
            f"stores has the pattern {pattern!r}, which is every queue; name queues, such as "
            "'emails' or 'media-*', and give HEADRACE_URL the store of all others"
        )
    try:
        check_name("queue", name)
    except InvalidName as error:
        raise InvalidSetting(
            f"stores has the pattern {pattern!r}: {error}; give the name of a queue, or the "
            "beginning of names and a *"
        ) from None
