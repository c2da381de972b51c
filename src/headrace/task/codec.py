"""JSON for arguments and results: msgspec's types, dataclasses and pydantic models."""

from __future__ import annotations

from typing import Any

import msgspec


def encode(value: Any) -> bytes:
    """The JSON of a value. Raises TypeError for what JSON cannot hold."""
    return _encoder.encode(value)


def encode_hook(value: Any) -> Any:
    """Pydantic models know how to become JSON by themselves; nothing else is guessed."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(type(value), "model_validate"):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be kept as JSON")


def decode_hook(kind: type, value: Any) -> Any:
    """The other way round. ValueError and TypeError become a validation error with its path."""
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    raise TypeError(f"{kind.__name__} cannot be read from JSON")


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)
