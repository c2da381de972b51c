"""What a handler's durable steps leave with its job: entries by kind and name, and their bodies.

    ("stage", "crawling")           a finished stage; ("stage", "page[7]") the one of key 7
    ("sleep", "#1")                 until when the first sleep without a name of its own lasts
    ("wait", "approved")            until when to wait for an event; "approved#2" the second time
    ("children", "#1")              the children that were made together
    ("event", "approved")           what was delivered from outside (`awaited.py`)

What a handler does not name is numbered in the order in which the handler comes to it. Inside of
a stage the name of the stage goes before it ("crawling/#1"), so that the numbers outside do not
depend on whether the stage is run or skipped.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from datetime import datetime

import msgspec

from headrace.errors import InvalidName
from headrace.model.durable.writes import StoredEntry
from headrace.model.names import check_text

STAGE = "stage"
SLEEP = "sleep"
WAIT = "wait"
CHILDREN = "children"

# Keys may be as long as a URL; what goes beyond this is told apart by its digest.
KEY_LIMIT = 200


class StageRecord(msgspec.Struct, omit_defaults=True):
    """A finished stage: its value, or the artifact that holds a large one. `tries` counts the
    calls of its function, `attempt` is the job's. With `sealed`, the whole value is in there, and
    `value` has what may be seen of it.
    """

    value: msgspec.Raw = msgspec.Raw(b"null")
    artifact: str | None = None
    sealed: str | None = None
    seconds: float = 0.0
    done: str | None = None
    attempt: int = 0
    tries: int = 1
    # The value was not stored.
    transient: bool = False


class Outlined(msgspec.Struct, frozen=True):
    """A value of which something may be seen also where it is sealed."""

    @abstractmethod
    def outline(self) -> Outlined:
        """Return what may be seen."""


class SleepRecord(msgspec.Struct):
    """A sleep. `until` is in seconds since the epoch."""

    until: float


class WaitRecord(msgspec.Struct, omit_defaults=True):
    """A wait for an event. Once it is over without one, later attempts see the same."""

    until: float | None = None
    timed_out: bool = False


class ChildrenRecord(msgspec.Struct, omit_defaults=True):
    """Children that were made together: their ids follow from `base`. `stored`: all are there."""

    base: str
    count: int
    stored: bool = False


class StageView(msgspec.Struct, frozen=True, kw_only=True):
    """A finished stage as people see it: when it was done, in which attempt, how long it took."""

    name: str
    at: datetime
    seconds: float
    attempt: int
    tries: int
    done: str | None
    artifact: str | None


def stage_view(entry: StoredEntry) -> StageView:
    """What is kept of a stage, without its value."""
    record = msgspec.json.decode(entry.body, type=StageRecord)
    return StageView(
        name=entry.name,
        at=entry.at,
        seconds=record.seconds,
        attempt=record.attempt,
        tries=record.tries,
        done=record.done,
        artifact=record.artifact,
    )


def stage_name(name: str, key: str | int | None = None) -> str:
    """The name that a stage is kept and shown by: its own, and its key in brackets."""
    check_text("stage", name)
    if key is None:
        if name.endswith("]") and "[" in name:
            raise InvalidName(
                f"stage {name!r} looks like a stage with a key; give the key as key=…, or leave "
                "the brackets out"
            )
        return name
    if "[" in name:
        raise InvalidName(f"stage {name!r} is used with a key, so it cannot contain '['")
    text = str(key)
    if len(text.encode("utf-8", "replace")) > KEY_LIMIT:
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        text = f"{text[: KEY_LIMIT // 4]}…{digest}"
    return check_text("stage", f"{name}[{text}]")


def named(kind: str, name: str) -> str:
    """Check a name that a handler gives to a sleep or a group of children."""
    check_text(kind, name)
    if "#" in name:
        raise InvalidName(f"{kind} {name!r} contains '#', which is for numbers; leave it out")
    return name
