"""From names in a bundle's declaration to what they name."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError, InvalidSetting


def resolve(bundle: str, what: str, given: Any) -> Any:
    """Return a function, imported if it was given as "module:function"."""
    if not isinstance(given, str):
        return given
    module, _, attribute = given.partition(":")
    if not attribute:
        raise InvalidSetting(
            f'bundle "{bundle}": {what} is {given!r}; write it as "package.module:function"'
        )
    found = getattr(importlib.import_module(module), attribute, None)
    if not callable(found):
        raise InvalidSetting(
            f'bundle "{bundle}": {what} names {given!r}, but the module {module} has no function '
            f"{attribute!r}"
        )
    return found


def folder_of(place: str | Path) -> Path:
    """Return a folder that is given by its path, or by the name of a package. The package itself
    is not imported, only those that it is in.
    """
    if isinstance(place, Path) or "/" in place:
        return Path(place)
    try:
        spec = importlib.util.find_spec(place)
    except (ModuleNotFoundError, ValueError):
        spec = None
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not locations:
        raise InvalidSetting(f'there is no package or folder "{place}"; is it in the wheel?')
    return Path(locations[0])


def told(error: BaseException) -> str:
    """Return an error as one sentence, with its type unless it is one of ours."""

    text = " ".join(str(error).split())
    return text if isinstance(error, HeadraceError) and text else f"{type(error).__name__}: {text}"
