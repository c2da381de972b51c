"""Transient stages: their values live in memory only, and `GONE` is what is left of them.

A stage is transient until the job ends, or until a later stage has finished. Its value is never
written; a later attempt computes it again, unless that later stage is recorded.
"""

from __future__ import annotations

from typing import NoReturn

from headrace.errors import InvalidSetting
from headrace.model.durable.entries import stage_name

Transient = tuple[str, ...] | None
"""None: the value of a stage is stored. Otherwise the stages of which one ends the need for it;
none of them: the job's end does.
"""


class Gone:
    """The type of `headrace.GONE`: the value of a transient stage that nobody needs any more."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "headrace.GONE"

    def __reduce__(self) -> NoReturn:
        raise TypeError(GONE_TEXT)


GONE = Gone()
GONE_TEXT = (
    "headrace.GONE is not a value: it is what a transient stage returns when the stage that it was "
    "for has finished; use it only there, or name a later stage as transient=…"
)


def check_transient(name: str, key: str | int | None, transient: bool | str) -> Transient:
    """Return the stages that end the need for the value of a stage."""
    if transient is False:
        return None
    if transient is True:
        return ()
    if not isinstance(transient, str) or transient == name:
        raise InvalidSetting(
            f"stage {name!r}: transient must be True, or the name of a later stage, got "
            f"{transient!r}"
        )
    if transient.endswith("]") or key is None:
        return (transient,)
    # In a loop, the later stage of the same key.
    return (transient, stage_name(transient, key))
