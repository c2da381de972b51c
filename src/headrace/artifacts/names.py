"""What artifacts may be called, and where each is kept. Pure: no I/O.

    bronze/0198…-job-id/3/reports/april.pdf        layer, job, token of the attempt, name
    bronze/0198…-job-id/3-2/reports/april.pdf      the same name, put a second time by that attempt
    gold/0198…-job-id/3/sha256-9f2c….csv           a name that a file system could not hold

Paths are the same in every store, so files can be copied from one to another.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from headrace.errors import InvalidName
from headrace.model.ids import parse_id

LAYERS = ("bronze", "silver", "gold", "artifacts")
NAME_LIMIT = 1_024
"""How many characters a name may have."""

# File systems take 255 bytes for each part, S3 1,024 for a whole key; we add a folder or a prefix.
PART_BYTES = 200
KEPT_BYTES = 600
# Engines index entries by name, and PostgreSQL takes no more than 2,704 bytes there.
ENTRY_BYTES = 512

HASHED = "sha256-"

_PATH = re.compile(
    rf"({'|'.join(LAYERS)})/"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/"
    r"[0-9]{1,19}(?:-[0-9]{1,19})?/(.+)",
    re.DOTALL,
)
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")


def check_layer(layer: str) -> str:
    """Check the name of a layer."""
    if layer not in LAYERS:
        raise InvalidName(
            f"artifact layer {str(layer)[:60]!r} is unknown; use one of {', '.join(LAYERS)}"
        )
    return layer


def check_name(name: str) -> str:
    """Check the name of an artifact; refuses what could lead out of its folder."""
    if (
        not isinstance(name, str)
        or not 1 <= len(name) <= NAME_LIMIT
        or any(part in ("", ".", "..") for part in name.split("/"))
        or any(character < " " or character in "\\\x7f" for character in name)
        or not _is_text(name)
    ):
        raise InvalidName(
            f"artifact name {ascii(name)[:80]} is not valid; use a relative path of at most "
            f'{NAME_LIMIT} characters without "..", empty parts, backslashes and control '
            "characters"
        )
    return name


def place(layer: str, job_id: str, token: int, name: str, *, version: int = 1) -> str:
    """Where a file is kept. `version` tells apart what one attempt puts under one name."""
    check_layer(layer)
    check_name(name)
    folder = f"{token}" if version == 1 else f"{token}-{version}"
    return f"{layer}/{parse_id(job_id)}/{folder}/{_kept_as(name)}"


def aside(path: str) -> str:
    """Where a file goes whose path is taken: by a folder, or with a file among its folders."""
    layer, job_id, folder, name = path.split("/", 3)
    return f"{layer}/{job_id}/{folder}/{hashed(name)}"


def check_path(path: str) -> tuple[str, str]:
    """The layer and the job of a path as `place` makes it. Refuses any other."""
    found = _PATH.fullmatch(path) if isinstance(path, str) else None
    try:
        if found is not None:
            check_name(found[3])
            return found[1], found[2]
    except InvalidName:
        pass
    raise InvalidName(
        f"artifact path {ascii(path)[:80]} is not valid; use one that `artifacts.put` returned"
    )


def is_path(text: str) -> bool:
    """Whether this is the path of an artifact rather than its name."""
    return _PATH.fullmatch(text) is not None


def entry_name(layer: str, name: str) -> str:
    """What the engine's index calls a file: `layer/name`, or a hash of a long name."""
    short = len(name.encode()) <= ENTRY_BYTES and not name.startswith(HASHED)
    return f"{check_layer(layer)}/{check_name(name) if short else hashed(name)}"


def hashed(name: str) -> str:
    """A short name that no other name shares, with the same extension."""
    extension = _EXTENSION.search(name)
    return f"{HASHED}{hashlib.sha256(name.encode()).hexdigest()}{extension[0] if extension else ''}"


def _kept_as(name: str) -> str:
    parts = name.split("/")
    plain = (
        len(name.encode()) <= KEPT_BYTES
        and all(len(part.encode()) <= PART_BYTES for part in parts)
        and not name.startswith(HASHED)
        # Some file systems hold two spellings of one text to be the same name.
        and unicodedata.is_normalized("NFC", name)
        and name.isprintable()
    )
    return name if plain else hashed(name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
