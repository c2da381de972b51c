"""Reads the statements, migrations and functions that an engine keeps in `.sql` files.

A file in `queries/` holds the statements of one group of verbs. Each begins with a line
`-- name: <name>`; a file without such a line is one statement, named like the file.

A line `-- include: <name>` stands for the text of that file in `fragments/`, without its comments:
what several statements or functions have in common is written once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from textwrap import indent

import msgspec

_NAME = re.compile(r"^-- name: ([a-z_]+)\n", re.MULTILINE)
_INCLUDE = re.compile(r"^( *)-- include: ([a-z_]+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_MIN_PROGRAM = re.compile(r"^-- min_program: (\d+)$", re.MULTILINE)


class Migration(msgspec.Struct, frozen=True):
    """One change of a schema.

    `min_program` is the lowest schema number that a program must know to use the store afterwards;
    None if older programs go on working. The file says so in a line `-- min_program: <number>`.
    """

    number: int
    name: str
    text: str
    min_program: int | None = None


class Statements:
    """Statements as attributes by their names; a text is made ready when it is first used."""

    def __init__(self, texts: Mapping[str, str], ready: Callable[[str], str] = str) -> None:
        self._texts = texts
        self._ready = ready

    def __getattr__(self, name: str) -> str:
        if name not in self._texts:
            raise AttributeError(f"there is no statement {name!r} in queries/")
        text = self._ready(self._texts[name])
        setattr(self, name, text)
        return text


@cache
def queries(package: str) -> dict[str, str]:
    """Return all statements in the folder `queries` of a package, by their names."""
    found: dict[str, str] = {}
    for stem, text in _complete(package, "queries"):
        _, *named = _NAME.split(text)
        parts = list(zip(named[::2], named[1::2], strict=True)) or [(stem, text)]
        for name, statement in parts:
            if name in found:
                raise ValueError(f"the statement {name!r} is there twice; rename that in {stem}")
            found[name] = statement.strip() + "\n"
    return found


def migrations(package: str) -> list[Migration]:
    """Return the migrations of a package in the order of their numbers."""
    return [
        migration(int(stem[:4]), stem, text) for stem, text in sorted(_texts(package, "migrations"))
    ]


def migration(number: int, name: str, text: str) -> Migration:
    """Return a migration, with what its header says about older programs."""
    stated = _MIN_PROGRAM.search(text)
    return Migration(number, name, text, None if stated is None else int(stated[1]))


def functions(package: str) -> dict[str, str]:
    """Return the files in `functions` and the folders in it: one function each, by its name."""
    return dict(sorted(_complete(package, "functions")))


def _complete(package: str, folder: str) -> list[tuple[str, str]]:
    """Return the texts of a folder, with fragments in the places where they are included."""
    folder_of_fragments = resources.files(package) / "fragments"

    def fragment(match: re.Match[str]) -> str:
        text = (folder_of_fragments / f"{match[2]}.sql").read_text(encoding="utf-8")
        # Before comments go: a fragment may include others.
        return indent(_COMMENT.sub("", _INCLUDE.sub(fragment, text)), match[1])

    return [(name, _INCLUDE.sub(fragment, text)) for name, text in _texts(package, folder)]


def _texts(package: str, folder: str) -> list[tuple[str, str]]:
    return list(_inside(resources.files(package) / folder))


def _inside(folder: Traversable) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in folder.iterdir():
        if path.is_dir():
            found += _inside(path)
        elif path.name.endswith(".sql"):
            found.append((path.name.removesuffix(".sql"), path.read_text(encoding="utf-8")))
    return found
