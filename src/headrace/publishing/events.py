"""Events that jobs publish, and their types: declared in code, their schemas kept in the engine."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from headrace.api_types.publishing import EVENT_TYPE, EventTypeView
from headrace.engine.base import Engine
from headrace.engine.bounded_reads import records_of
from headrace.errors import InvalidArguments, InvalidName, InvalidSetting, UnknownEventType
from headrace.model.names import NAME_LIMIT
from headrace.suggest import similar_or_first
from headrace.task.codec import decode_hook, encode, schema_hook

log = logging.getLogger("headrace.publishing")

KIND = "event-type"
PAGE = 1_000
RESERVED = "headrace."
TEST_TYPE = "headrace.test.v1"
"""What `headrace destinations test` sends."""
# A lane has room for the name of a destination and so much of a key.
LONGEST_KEY_IN_LANE = 256

_TYPE = re.compile(EVENT_TYPE)
_decoder = msgspec.json.Decoder(EventTypeView)


class PublishedEvent(msgspec.Struct, kw_only=True, frozen=True):
    """One event, as receivers get it. `id` is the same on each delivery; `job_id` is the job that
    published it, None for code outside of jobs.
    """

    id: str
    type: str
    time: datetime
    key: str | None = None
    job_id: str | None = None
    data: msgspec.Raw


class EventType(msgspec.Struct, frozen=True, eq=False):
    """A declared type of events."""

    name: str
    model: Any
    summary: str
    schema: dict[str, Any]
    decoder: msgspec.json.Decoder[Any]


class EventTypes:
    """The types that an App declares."""

    def __init__(self) -> None:
        self._declared: dict[str, EventType] = {}
        # The engine that has them all.
        self.stored_in: Engine | None = None

    def __len__(self) -> int:
        return len(self._declared)

    def declare(self, name: str, model: Any, summary: str) -> None:
        """Add a type. `model` is a msgspec, pydantic or dataclass type."""
        check_event_type(name)
        if name.startswith(RESERVED):
            raise InvalidName(f"event type {name!r} begins with {RESERVED!r}, which is reserved")
        known = self._declared.get(name)
        if known is not None and known.model is not model:
            raise InvalidSetting(
                f"event type {name!r} is declared twice, with {known.model!r} and {model!r}; a "
                "changed event is a new version, with another name"
            )
        try:
            schema = msgspec.json.schema(model, schema_hook=schema_hook)
            decoder = msgspec.json.Decoder(model, dec_hook=decode_hook)
        except (TypeError, NameError) as error:
            raise InvalidSetting(
                f"event type {name!r} needs a model that JSON can hold: {error}; use a "
                "msgspec.Struct, a dataclass or a pydantic model"
            ) from None
        self._declared[name] = EventType(name, model, summary, schema, decoder)
        self.stored_in = None

    def data(self, name: str, encoded: bytes) -> msgspec.Raw:
        """Return the data of an event from the JSON of its body, with defaults filled in."""
        declared = self._declared.get(name)
        if declared is None:
            raise UnknownEventType(
                f"event type {name!r} is not declared (known: "
                f"{similar_or_first(name, self._declared)}); declare it: "
                "app.event_type(name, Model)"
            )
        try:
            return msgspec.Raw(encode(declared.decoder.decode(encoded)))
        except (msgspec.DecodeError, ValueError) as error:
            raise InvalidArguments(
                f"event {name}: {error}; the body has to fit "
                f"{getattr(declared.model, '__name__', declared.model)}"
            ) from None

    async def store(self, engine: Engine, now: datetime) -> None:
        """Store what the engine does not have yet. May be repeated."""
        if self.stored_in is engine:
            return
        for declared in list(self._declared.values()):
            record = await engine.record_get(KIND, declared.name)
            before = None if record is None else _decoder.decode(record.body)
            if before is not None:
                if (before.schema, before.summary) == (declared.schema, declared.summary):
                    continue
                if before.schema != declared.schema:
                    log.warning(
                        "The schema of event type %s has changed; receivers rely on it: a change "
                        "that they notice should be a new version, with another name",
                        declared.name,
                    )
            view = EventTypeView(
                name=declared.name,
                summary=declared.summary,
                schema=declared.schema,
                declared_at=now if before is None else before.declared_at,
            )
            await engine.record_put(KIND, declared.name, msgspec.json.encode(view))
        self.stored_in = engine


async def stored_types(engine: Engine) -> list[EventTypeView]:
    """Return all types that programs have declared on this store, by name."""
    return [_decoder.decode(each.body) for each in await records_of(engine, KIND, page=PAGE)]


def check_event_type(name: str) -> str:
    """Check the name of an event type."""
    if not isinstance(name, str) or not _TYPE.fullmatch(name) or len(name) > NAME_LIMIT:
        raise InvalidName(
            f"event type {name!r} is not valid; use words of small letters, digits and _ with "
            'dots between them, and the version at the end: "document.processed.v1"'
        )
    return name


def wanted_by(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether one of these patterns is this type, or its beginning: `document.*`."""
    return any(
        event_type.startswith(each[:-1]) if each.endswith("*") else event_type == each
        for each in patterns
    )


def lane_of(prefix: str, key: str) -> str:
    """Return the lane in which what has this key stays in order. A long key goes in by its hash."""
    if len(key.encode()) > LONGEST_KEY_IN_LANE:
        key = hashlib.sha256(key.encode()).hexdigest()
    return f"{prefix}:{key}"


def delivery_id(event_id: str, destination: str) -> str:
    """Return the id of the job that delivers an event to a destination: always the same, and in
    time order with the event.
    """
    digest = hashlib.sha256(f"{event_id}/{destination}".encode()).hexdigest()
    return f"{event_id[:19]}{'89ab'[int(digest[0], 16) & 3]}{digest[1:4]}-{digest[4:16]}"
