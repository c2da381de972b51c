"""Texts as clauses, in both languages: what each speaks of, and what it says of it.

`Piece` is what both languages have in common; `korean_clauses` and `english_clauses` make pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Border(IntEnum):
    """What stands behind a piece: nothing, `and` or a comma, `but`, the end of a sentence."""

    NONE = 0
    SOFT = 1
    TURN = 2
    END = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A word or morpheme: the aspect that it names, how much it praises, and whether it is a noun
    that names something of its own.
    """

    begin: int
    end: int
    form: str
    name: str = ""
    value: float = 0.0
    noun: str = ""
    border: Border = Border.NONE


@dataclass(frozen=True, slots=True)
class Clause:
    """Pieces that belong together, and the sentence that they are from."""

    pieces: tuple[Piece, ...]
    sentence: tuple[int, int]

    @property
    def has_value(self) -> bool:
        """Return whether it praises or blames."""
        return any(piece.value for piece in self.pieces)

    @property
    def names(self) -> frozenset[str]:
        """Return the known aspects that it names."""
        return frozenset(piece.name for piece in self.pieces if piece.name)


def clauses(pieces: Sequence[Piece]) -> list[Clause]:
    """Return the clauses of a text.

    A clause that says nothing goes together with the next one of its sentence: "the food, the wine
    and the staff were great" is one. Behind "but" only where the next one names nothing else: "the
    parcel came, but it was crushed" is one; "the food came, but the staff was rude" is two.
    """
    found: list[Clause] = []
    for sentence in _split(pieces, Border.END):
        where = (sentence[0].begin, sentence[-1].end)
        waiting: list[Piece] = []
        for part in _split(sentence, Border.SOFT):
            joined = Clause((*waiting, *part), where)
            alone = Clause(tuple(part), where)
            before = Clause(tuple(waiting), where)
            turned = waiting and waiting[-1].border is Border.TURN
            if turned and alone.names and before.names - alone.names:
                found.append(before)
                joined = alone
            if joined.has_value:
                found.append(joined)
                waiting = []
            else:
                waiting = list(joined.pieces)
        if waiting:
            found.append(Clause(tuple(waiting), where))
    return found


def _split(pieces: Sequence[Piece], least: Border) -> list[list[Piece]]:
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        parts[-1].append(piece)
        if piece.border >= least:
            parts.append([])
    return [part for part in parts if part]


def value_near(clause: Clause, place: int) -> float:
    """Return what a clause says of its piece at `place`: nearer words count more."""
    return sum(piece.value / (1 + abs(place - other)) for other, piece in enumerate(clause.pieces))
