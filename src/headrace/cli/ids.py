"""Ids as people type them: the beginning will do, if it is that of one only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.errors import InvalidInput, JobNotFound
from headrace.model.ids import parse_id
from headrace.model.job import JobFilter

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

LEAST = 4
# An error names at most so many.
SHOWN = 3
_HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_BEGINNING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,11})?|[0-9a-f]{4,8}")


async def whole_id(backend: Backend, text: str) -> str:
    """Return the id of the job that begins with this text. Raises `JobNotFound` if there is none,
    `InvalidInput` if there are several.
    """
    beginning = text.strip().lower()
    if not _BEGINNING.fullmatch(beginning):
        return parse_id(text)
    # Ids sort by their text, and pages go down from an id.
    after = beginning + _HIGHEST[len(beginning) :]
    page = await backend.list(JobFilter(), cursor=after, limit=SHOWN + 1)
    found = [job.id for job in page.jobs if job.id.startswith(beginning)]
    if not found:
        raise JobNotFound(f"no job has an id that begins with {text!r}; see: headrace jobs list")
    return _only(text, found)


async def whole_ids(backend: Backend, texts: Iterable[str]) -> list[str]:
    """The same for several, each once."""
    return list(dict.fromkeys([await whole_id(backend, text) for text in texts]))


def pick_id(text: str, known: Iterable[str]) -> str:
    """Return the one of these ids that begins with this text; the text itself if there is none, so
    that whoever looks for it says so.
    """
    beginning = text.strip().lower()
    ids = list(known)
    if text in ids or len(beginning) < LEAST:
        return text
    found = [each for each in ids if each.startswith(beginning)]
    return _only(text, found) if found else text


def _only(text: str, found: Sequence[str]) -> str:
    if len(found) > 1:
        more = " …" if len(found) > SHOWN else ""
        raise InvalidInput(
            f"{text!r} is the beginning of several ids: {', '.join(found[:SHOWN])}{more}; "
            "write more of it"
        )
    return found[0]
