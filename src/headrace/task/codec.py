"""JSON for arguments and results: msgspec's types, dataclasses and pydantic models."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.errors import InvalidArguments
from headrace.model.durable.transient import GONE, GONE_TEXT


def encode_hook(value: Any) -> Any:
    """Return a Pydantic model as plain data. Nothing else is guessed."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(type(value), "model_validate"):
        return dump(mode="json")
    if value is GONE:
        raise TypeError(GONE_TEXT)
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")


def decode_hook(kind: type, value: Any) -> Any:
    """Return a Pydantic model from plain data. A ValueError or TypeError becomes a validation error
    that names the path.
    """
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    raise TypeError(f"{kind.__name__} cannot be read from JSON")


def schema_hook(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a Pydantic model, which describes itself."""
    describe = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError  # msgspec then says which type it is
    schema: dict[str, Any] = describe()
    return schema


def encode_body(event_type: str, body: Any) -> bytes:
    """Return the body of an event as JSON."""
    try:
        return encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArguments(
            f"event {event_type}: {error}; pass plain data, or its model"
        ) from None


# Returns the JSON of a value; raises TypeError for what JSON cannot hold. Bound once: it is called
# for each job.
encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
