"""Notes as the columns that note.sql takes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.engine.postgres.rows import storable_or_none
from headrace.engine.text import storable
from headrace.model.durable.writes import Note


def merged(notes: Sequence[Note]) -> list[Note]:
    """One note for each attempt, by id: what came later replaces what came before."""
    together: dict[tuple[str, int], Note] = {}
    for note in notes:
        attempt = (note.job_id, note.token)
        before = together.get(attempt)
        together[attempt] = note if before is None else _after(before, note)
    return [together[attempt] for attempt in sorted(together)]


def _after(before: Note, note: Note) -> Note:
    return Note(
        note.job_id,
        note.token,
        before.stage if note.stage is None else note.stage,
        before.progress if _number(note.progress) is None else note.progress,
        before.message if note.message is None else note.message,
        before.entries + note.entries,
    )


def _number(progress: float | None) -> float | None:
    """Progress, if it is a number."""
    return None if progress is None or math.isnan(progress) else progress


def columns(notes: Sequence[Note]) -> tuple[list[object], ...]:
    """Ids, tokens, stages, progress, messages; then id, token, kind, name, body of entries."""
    kept: list[tuple[object, ...]] = []
    for note in notes:
        last: dict[tuple[str, str], bytes] = {}
        for entry in note.entries:
            # A name that is written twice keeps its first place and its last body.
            last[storable(entry.kind), storable(entry.name)] = entry.body
        kept += [(note.job_id, note.token, *place, body) for place, body in last.items()]
    return (
        [note.job_id for note in notes],
        [note.token for note in notes],
        [storable_or_none(note.stage) for note in notes],
        [_number(note.progress) for note in notes],
        [storable_or_none(note.message) for note in notes],
        *([row[n] for row in kept] for n in range(5)),
    )
