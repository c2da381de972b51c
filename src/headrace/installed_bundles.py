"""Which bundles there are: those that installed packages name, and those made in this process."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "headrace.bundles"
VARIABLES = "headrace.variables"
PREFIX = "HEADRACE_"

# Names of bundles that were made here: their settings are known although no package names them.
made: set[str] = set()


@functools.cache
def installed() -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of all installed bundles by name; two of one name are both there.

    Reads the metadata of installed packages and imports none of them.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        same = found.get(point.name, ())
        # A package that is on the path twice is one bundle.
        if point.value not in {other.value for other in same}:
            found[point.name] = (*same, point)
    return dict(sorted(found.items()))


def bundle_names() -> set[str]:
    """Return the names of all bundles that this process can know."""
    return {*installed(), *made}


@functools.cache
def _older_variables() -> tuple[tuple[str, str, str], ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

    found = ((each.name, *each.value.partition(":")[::2]) for each in entry_points(group=VARIABLES))
    return tuple(sorted(set(found)))


def older_variables(bundles: Iterable[str]) -> dict[str, str]:
    """Return the environment variables of other systems that these bundles read as a setting of
    Headrace, as their packages name them: `REDIS_URL = "spots:url"` in the entry point group
    `headrace.variables`.
    """
    chosen = set(bundles)
    if not chosen:
        return {}
    return {name: field for name, bundle, field in _older_variables() if bundle in chosen}


def variable_prefix(name: str) -> str:
    """Return how the environment variables of a bundle begin."""
    return f"{PREFIX}{name.upper().replace('-', '_')}_"


def bundle_of(variable: str) -> str | None:
    """Return the bundle that an environment variable belongs to; the longest name that fits."""
    fitting = [name for name in bundle_names() if variable.startswith(variable_prefix(name))]
    return max(fitting, key=len, default=None)
