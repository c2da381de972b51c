"""`config/queue.yaml`: which broker, with which options. Errors name the file and the line.

adapter: kafka
options:
  bootstrap_servers: localhost:9092
  topics: [jobs]
  sasl_password: ${KAFKA_PASSWORD}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.dispatchers.events.dispatcher import BATCH_SIZE, HOLD_SECONDS, LARGEST_BATCH
from headrace.errors import InvalidSetting, MissingDriver
from headrace.suggest import unknown

if TYPE_CHECKING:
    from headrace.config_files import Document

DEFAULT = Path("config/queue.yaml")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_RANGES = {"batch_size": (1, LARGEST_BATCH), "hold_seconds": (0, 86_400)}


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says. `path` and `lines` tell where, for errors."""

    adapter: str
    options: dict[str, Any] = {}
    batch_size: int = BATCH_SIZE
    hold_seconds: float = HOLD_SECONDS
    name: str | None = None
    path: str = ""
    lines: dict[str, int] = {}

    def at(self, field: str) -> str:
        """Where a field is, for an error: " (config/queue.yaml line 3)"."""
        while field and field not in self.lines:
            field = field.rpartition(".")[0]
        return f" ({self.path} line {self.lines[field]})" if field else f" ({self.path})"


_FIELDS = [
    field for field in msgspec.structs.fields(QueueConfig) if field.name not in ("path", "lines")
]


def read_queue_config(
    path: Path = DEFAULT, *, environment: Mapping[str, str] | None = None
) -> QueueConfig:
    """Read a file. `${NAME}` stands for a variable of the environment, so that no secret need be
    in it; `${NAME:-text}` for the text where the variable is not set.
    """
    document = load_document(path, example="an adapter and its options", extra="kafka")
    content = {} if document.value is None else document.value
    lines = {".".join(map(str, place)): line for place, line in document.lines.items() if place}
    where = QueueConfig(adapter="", path=str(path), lines=lines)
    if not isinstance(content, dict):
        raise InvalidSetting(
            f"{path} must have names with values, such as adapter: kafka; "
            f"got {type(content).__name__}"
        )
    known = [field.name for field in _FIELDS]
    for name in content:
        if name not in known:
            raise InvalidSetting(f"{unknown('setting', name, known)}{where.at(name)}")
    if "adapter" not in content:
        raise InvalidSetting(f"{path} names no adapter; write, for example, adapter: kafka")
    variables = os.environ if environment is None else environment
    given: dict[str, Any] = {}
    for field in _FIELDS:
        if field.name in content:
            value = fill_variables(content[field.name], field.name, where, variables)
            given[field.name] = _checked(field.name, field.type, value, where.at(field.name))
    return QueueConfig(**given, path=str(path), lines=lines)


def _checked(name: str, kind: Any, value: Any, where: str) -> Any:
    try:
        converted = msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(f"{name} has the value {value!r}: {error}{where}") from None
    least, most = _RANGES.get(name, (None, None))
    if least is not None and most is not None and not least <= converted <= most:
        raise InvalidSetting(f"{name} must be between {least} and {most}, got {value!r}{where}")
    return converted


def fill_variables(value: Any, place: str, where: QueueConfig, variables: Mapping[str, str]) -> Any:
    """The value with variables of the environment put in."""
    match value:
        case dict():
            return {
                name: fill_variables(each, f"{place}.{name}", where, variables)
                for name, each in value.items()
            }
        case list():
            return [fill_variables(each, place, where, variables) for each in value]
        case str():

            def put_in(found: re.Match[str]) -> str:
                text = variables.get(found[1], found[2])
                if text is None:
                    raise InvalidSetting(
                        f"{place} needs the environment variable {found[1]}, which is not set"
                        f"{where.at(place)}"
                    )
                return text

            return _VARIABLE.sub(put_in, value)
        case _:
            return value


def load_document(path: Path, *, example: str, extra: str) -> Document:
    """Return what a file has. Errors say what belongs there (`example`), or what to install."""
    try:
        from headrace.config_files import (  # noqa: PLC0415 - only who reads such a file needs it
            BadDocument,
            NoDocument,
            read_document,
        )
    except ModuleNotFoundError:
        raise MissingDriver(
            f"ruamel.yaml, which reads {path}, is not installed. "
            f'Install it: pip install "headrace[{extra}]"'
        ) from None
    try:
        return read_document(path)
    except NoDocument:
        raise InvalidSetting(
            f"there is no file {str(path)!r}; write one with {example}, "
            "or name another with --config"
        ) from None
    except BadDocument as error:
        raise InvalidSetting(str(error)) from None
