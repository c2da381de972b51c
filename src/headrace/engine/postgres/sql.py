"""The statements, migrations and functions of this engine.

Functions are written under plain names and installed under names that end in a hash of all their
texts (`exchange_1f0c2a9b`). So programs whose functions differ use the same tables side by side,
each by its own set; see docs/decisions/0020.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

import msgspec

from headrace.engine import sql_files

_PACKAGE = "headrace.engine.postgres"
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


class FunctionSet(msgspec.Struct, frozen=True):
    """The functions of one program: `scripts` creates them under the names `installed`."""

    hash: str
    installed: tuple[str, ...]
    scripts: tuple[str, ...]


def query(name: str) -> str:
    """Return a statement of queries/. It calls the functions of this program's set."""
    return with_set_names(sql_files.queries(_PACKAGE)[name])


def migrations() -> list[sql_files.Migration]:
    """Return the changes of tables, by their number."""
    return sql_files.migrations(_PACKAGE)


@cache
def function_set() -> FunctionSet:
    """Return the set of this program."""
    return set_of(_functions())


def set_of(functions: dict[str, str]) -> FunctionSet:
    """Return the set of these functions. What comments say does not count for its hash."""
    code = "".join(_COMMENT.sub("", text) for _, text in sorted(functions.items()))
    digest = sha256(code.encode()).hexdigest()[:8]
    return FunctionSet(
        digest,
        tuple(f"{name}_{digest}" for name in functions),
        tuple(_renamed(text, functions, digest) for text in functions.values()),
    )


def function_name(name: str) -> str:
    """Return the name under which a function is installed."""
    return f"{name}_{function_set().hash}"


@cache
def _functions() -> dict[str, str]:
    return sql_files.functions(_PACKAGE)


def with_set_names(statement: str) -> str:
    """Return a statement that calls functions by the names under which they are installed."""
    return _renamed(statement, _functions(), function_set().hash)


# Statements call the functions of this program's set.
sql = sql_files.Statements(sql_files.queries(_PACKAGE), with_set_names)


def _renamed(text: str, functions: dict[str, str], digest: str) -> str:
    return re.sub(rf"\b({'|'.join(functions)})(?=\()", rf"\1_{digest}", text)
