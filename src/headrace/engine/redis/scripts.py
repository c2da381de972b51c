"""The Lua scripts: one file per verb, linked with the library files that it names.

A script's header is the truth about it, not a comment on it: `KEYS` lists the keys that it may
touch, `USES` the library files in front of it, which list theirs. In Lua each key is a constant of
that name in capitals; one that is not declared does not exist.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files

import msgspec

_HEADER = re.compile(r"^-- (KEYS|USES)((?: [a-z_]+)*)$", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """A linked script, ready to be sent. `keys` are in the order in which it expects them."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...]


@cache
def script(name: str) -> Script:
    """Read and link one script."""
    folder = files(__package__) / "scripts"
    body = (folder / f"{name}.lua").read_text("utf-8")
    flags, _, rest = body.partition("\n")
    libraries = [
        (folder / "library" / f"{used}.lua").read_text("utf-8") for used in _declared(body, "USES")
    ]
    keys = dict.fromkeys(key for text in (body, *libraries) for key in _declared(text, "KEYS"))
    names = ", ".join(key.upper() for key in keys)
    values = ", ".join(f"KEYS[{n}]" for n in range(1, len(keys) + 1))
    declaration = f"local {names} = {values}\n" if keys else ""
    source = "\n".join([flags, declaration, *libraries, rest])
    # The server names a script by this digest; nothing is kept secret by it.
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name=name, source=source, sha=sha, keys=tuple(keys))


def names() -> list[str]:
    """All verbs that have a script."""
    folder = files(__package__) / "scripts"
    return sorted(
        path.name.removesuffix(".lua") for path in folder.iterdir() if path.name.endswith(".lua")
    )


def _declared(text: str, kind: str) -> list[str]:
    return [name for word, list_ in _HEADER.findall(text) if word == kind for name in list_.split()]
