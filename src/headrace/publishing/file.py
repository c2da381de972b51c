"""`config/destinations.yaml`: where events go. Errors name the file and the line.

destinations:
  crm:
    kind: webhook
    types: [document.*]
    options:
      url: https://crm.example.com/hooks/headrace
    secret: ${CRM_SECRET}
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from headrace.api_types.publishing import DestinationRequest
from headrace.dispatchers.events.config import QueueConfig, fill_variables, load_document
from headrace.errors import InvalidInput, InvalidSetting
from headrace.publishing.destinations import (
    Destination,
    check_secret,
    convert_options,
    make_destination,
)

DEFAULT = Path("config/destinations.yaml")
ORIGIN = "file"


def read_destinations(
    path: Path, *, now: datetime, environment: Mapping[str, str] | None = None
) -> list[Destination]:
    """Read a file. `${NAME}` stands for a variable of the environment, so that no secret need be
    in it.
    """
    document = load_document(path, example="destinations", extra="workflows")
    lines = {".".join(map(str, place)): line for place, line in document.lines.items() if place}
    where = QueueConfig(adapter="", path=str(path), lines=lines)
    content = document.value
    if not isinstance(content, dict) or set(content) != {"destinations"}:
        raise InvalidSetting(f"{path} must have destinations: with a name for each, and no more")
    named = content["destinations"] or {}
    if not isinstance(named, dict):
        raise InvalidSetting(f"destinations must be names with values{where.at('destinations')}")
    variables = os.environ if environment is None else environment
    return [
        make_one(
            str(name),
            fill_variables(body, f"destinations.{name}", where, variables),
            where.at(f"destinations.{name}"),
            now,
        )
        for name, body in named.items()
    ]


def make_one(name: str, body: Any, at: str, now: datetime, *, origin: str = ORIGIN) -> Destination:
    """Return the destination that a file has at a place, which errors name."""
    try:
        asked = msgspec.convert(body, DestinationRequest, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(f"destination {name!r}: {error}{at}") from None
    try:
        made = make_destination(
            name,
            asked.kind,
            msgspec.to_builtins(convert_options(asked.kind, asked.options, strict=False)),
            types=asked.types,
            retries=asked.retries,
            origin=origin,
            now=now,
        )
        if asked.kind == "webhook":
            if asked.secret is None:
                raise InvalidSetting(
                    f"destination {name!r} needs a secret in a file: secret: ${{NAME}}"
                )
            made = msgspec.structs.replace(made, secrets=(check_secret(asked.secret),))
    except InvalidInput as error:
        raise InvalidSetting(f"{error}{at}") from None
    return made
