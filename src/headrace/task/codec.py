"""JSON for arguments and results: msgspec's types, dataclasses and pydantic models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.durable.transient_stages import GONE, GONE_TEXT


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


def encode_exact(value: Any) -> bytes:
    """Return the JSON of a value that comes back as it was. Raises ValueError for one that JSON
    would change: NaN and infinity become null, and of keys that are equal as text all but one are
    lost. Raises TypeError for what JSON cannot hold.
    """
    encoded = encode(value)
    # What most results are without, so that they cost nothing more.
    if b"null" in encoded or b"{" in encoded:
        check_exact(value, encoded)
    return encoded


def check_exact(value: Any, encoded: bytes) -> None:
    """Raise ValueError if `encoded` is not all of `value`, as for `encode_exact`."""
    if b"null" in encoded and value is not None:
        for path, number in _not_finite(value):
            shown = "NaN" if math.isnan(number) else "infinity"
            where = f" (at {path})" if path else ""
            raise ValueError(f"JSON has no {shown}, it would become null{where}")
    # A key that is there twice is lost when it is read, and what is written then is shorter.
    if b"{" in encoded and len(_again(_read(encoded))) != len(encoded):
        json.loads(encoded, object_pairs_hook=_refuse_equal_keys)


def _not_finite(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            yield from _not_finite(item, f"{path}[{index}]")
    elif value is not None and not isinstance(value, (str, int, bytes, msgspec.Raw)):
        plain = msgspec.to_builtins(value, enc_hook=_looked_at, str_keys=True)
        if type(plain) is not type(value):
            yield from _not_finite(plain, path)


def _looked_at(value: Any) -> Any:
    """Return a value as plain data. What is JSON already has no numbers to look at."""
    return None if isinstance(value, msgspec.Raw) else encode_hook(value)


def _refuse_equal_keys(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"two keys are {json.dumps(key)} as text, so one would be lost")
        seen.add(key)


def encode_body(event_type: str, body: Any) -> bytes:
    """Return the body of an event as JSON."""
    try:
        return encode_exact(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidArguments(
            f"event {event_type}: {error}; pass plain data, or its model"
        ) from None


# Returns the JSON of a value; raises TypeError for what JSON cannot hold. Bound once: it is called
# for each job.
encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_read = msgspec.json.Decoder().decode
_again = msgspec.json.Encoder().encode


def encoded_meta(meta: Any) -> bytes:
    """Return the metadata of a job as it is stored."""
    if not isinstance(meta, Mapping):
        raise InvalidSetting(f"meta must be names with values, got {meta!r}")
    try:
        return encode_exact(meta)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidSetting(f"meta: {error}; give plain data") from None
