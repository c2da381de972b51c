"""The Lua scripts: one file per verb in `scripts/<group of verbs>/`, linked with the files of
`scripts/library/<room>/` that it names.

A script's header is the truth about it, not a comment on it: `KEYS` lists the keys that it may
touch, `USES` the library files in front of it, which list theirs. In Lua a key is its name in
capitals; one that is not declared does not exist. Keys and constants (a name in capitals that is
given a number or a text) are put in place here: as variables, each function that mentions them
would have to bind them anew in every call, which cost more than the work of a small call.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

LIBRARY = "library"

_HEADER = re.compile(r"^-- (KEYS|USES)((?: [a-z_]+)*)$", re.MULTILINE)
_CONSTANT = re.compile(r"^local ([A-Z][A-Z_]*) = (-?[0-9]+|'[^']*')( *--.*)?$", re.MULTILINE)
# A text in quotes is passed over whole, so that no name is replaced inside of it.
_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|\b[A-Z][A-Z_]+\b")
_COMMENT = re.compile(r"^ *--.*\n|  +--.*$", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """A linked script, ready to be sent. `keys` are in the order in which it expects them."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]


@cache
def script(name: str) -> Script:
    """Return one script, linked."""
    body = text(name)
    library = _library()
    libraries = [library[used].read_text("utf-8") for used in _declared(body, "USES")]
    texts = (body, *libraries)
    keys = tuple(dict.fromkeys(key for each in texts for key in _declared(each, "KEYS")))
    flags, _, rest = body.partition("\n")
    code = _put_in_place("\n".join([*libraries, rest]), keys)
    source = f"{flags}\n-- {name}\n{code}"
    # The server names a script by this digest; nothing is kept secret by it.
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name=name, source=source, sha=sha, keys=keys)


def names() -> list[str]:
    """Return all verbs that have a script."""
    return sorted(_places())


def text(name: str) -> str:
    """Return a script as it is written, without what it uses."""
    return _places()[name].read_text("utf-8")


@cache
def _places() -> dict[str, Traversable]:
    return _scripts_of(group for group in _folder().iterdir() if group.name != LIBRARY)


@cache
def _library() -> dict[str, Traversable]:
    return _scripts_of((_folder() / LIBRARY).iterdir())


def _scripts_of(groups: Iterable[Traversable]) -> dict[str, Traversable]:
    """Return the scripts of some folders by name. No two of them have the same."""
    return {
        path.name.removesuffix(".lua"): path
        for group in groups
        if group.is_dir()
        for path in group.iterdir()
        if path.name.endswith(".lua")
    }


def _folder() -> Traversable:
    return files(__package__) / "scripts"


def _put_in_place(code: str, keys: tuple[str, ...]) -> str:
    """Replace keys and constants by what they stand for, and leave out comments."""
    code = _COMMENT.sub("", code)
    values = {match[1]: match[2] for match in _CONSTANT.finditer(code)}
    values |= {key.upper(): f"KEYS[{n}]" for n, key in enumerate(keys, 1)}
    code = _CONSTANT.sub("", code)
    return _WORD.sub(lambda match: values.get(match[0], match[0]), code)


def _declared(text: str, kind: str) -> list[str]:
    return [name for word, list_ in _HEADER.findall(text) if word == kind for name in list_.split()]
