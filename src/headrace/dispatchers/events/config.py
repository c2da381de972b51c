"""`config/queue.yaml`: which broker, with which options, and its adapter. Errors name the line.

adapter: kafka
options:
  bootstrap_servers: localhost:9092
  topics: [jobs]
  sasl_password: ${KAFKA_PASSWORD}
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.dispatcher import BATCH_SIZE, HOLD_SECONDS, LARGEST_BATCH
from headrace.engine.stored_text import redacted
from headrace.errors import HeadraceError, InvalidSetting, MissingDriver
from headrace.suggest import unknown

if TYPE_CHECKING:
    from headrace.config_files import Document

DEFAULT = Path("config/queue.yaml")
OURS = {
    "kafka": "headrace.dispatchers.events.adapters.kafka:KafkaAdapter",
    "redis_streams": "headrace.dispatchers.events.adapters.redis_streams:RedisStreamsAdapter",
    "nats": "headrace.dispatchers.events.adapters.nats:NatsAdapter",
    "rabbitmq": "headrace.dispatchers.events.adapters.rabbitmq:RabbitmqAdapter",
    "sqs": "headrace.dispatchers.events.adapters.sqs:SqsAdapter",
}
# The same for Kafka, as it is named elsewhere: `queue_dispatcher:` with these.
SECTION = "queue_dispatcher"
KAFKA = {
    "kafka_bootstrap_servers": "bootstrap_servers",
    "kafka_group_id": "group",
    "kafka_topic": "topics",
}
BESIDE = ("batch_size", "hold_seconds", "name")
SECRET = ("password", "secret", "token", "credential", "key")

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
    if SECTION in content:
        content = _section(content, where)
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


def _section(content: dict[str, Any], where: QueueConfig) -> dict[str, Any]:
    """Return what `queue_dispatcher:` says, the form in which dispatchers for Kafka alone are
    configured, in our words.
    """
    section = content[SECTION]
    others = [name for name in content if name != SECTION]
    if others:
        raise InvalidSetting(
            f"{others[0]} cannot stand beside {SECTION}: move it into {SECTION}, "
            f"or write adapter and options{where.at(others[0])}"
        )
    if not isinstance(section, dict):
        raise InvalidSetting(
            f"{SECTION} must have names with values, such as kafka_topic: jobs; "
            f"got {type(section).__name__}{where.at(SECTION)}"
        )
    found: dict[str, Any] = {"adapter": "kafka", "options": {}}
    for name, value in section.items():
        place = f"{SECTION}.{name}"
        if name == "database":
            check_database(place, value, where.at(place))
        elif name in KAFKA:
            option = KAFKA[name]
            several = option == "topics" and isinstance(value, str)
            found["options"][option] = [value] if several else value
            where.lines[f"options.{option}"] = where.lines[place]
        elif name in BESIDE:
            found[name] = value
            where.lines[name] = where.lines[place]
        else:
            words = unknown("setting", place, [f"{SECTION}.{each}" for each in (*KAFKA, *BESIDE)])
            raise InvalidSetting(f"{words}{where.at(place)}")
    where.lines["options"] = where.lines[SECTION]
    return found


def check_database(place: str, value: object, where: str) -> None:
    """Accept the name of a database only if it is that of the App."""
    if value != "default":
        raise InvalidSetting(
            f'{place} must be "default", got {value!r}: jobs are stored where HEADRACE_URL '
            f"or --url says{where}"
        )


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
        # Only who reads such a file needs it.
        from headrace.config_files import NoDocument, read_document  # noqa: PLC0415
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


def make_adapter(config: QueueConfig) -> QueueAdapter:
    """Return the adapter that a file names, its options checked against the constructor."""
    kind = find_adapter(config)
    parameters = inspect.signature(kind).parameters
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:
        hints = {}  # a user's own class may name what only a type checker imports
    options: dict[str, Any] = {}
    for name, value in config.options.items():
        if name not in parameters:
            words = unknown("option", f"{name}", list(parameters))
            raise InvalidSetting(f"{config.adapter}: {words}{config.at(f'options.{name}')}")
        options[name] = _converted(config, name, value, hints.get(name, Any))
    if "batch_size" in parameters:
        options.setdefault("batch_size", config.batch_size)
    missing = [
        name
        for name, each in parameters.items()
        if each.default is each.empty and name not in options and each.kind is each.KEYWORD_ONLY
    ]
    if missing:
        raise InvalidSetting(
            f"{config.adapter} needs the option {' and '.join(missing)}{config.at('options')}"
        )
    try:
        return kind(**options)
    except HeadraceError as error:
        raise type(error)(f"{config.adapter}: {error}{config.at('options')}") from None


def find_adapter(config: QueueConfig) -> type[QueueAdapter]:
    """Return the class that is named. The current folder is on the path."""
    where = config.at("adapter")
    reference = OURS.get(config.adapter.replace("-", "_"), config.adapter)
    module_name, colon, attribute = reference.partition(":")
    if not colon or not all(part.isidentifier() for part in module_name.split(".")):
        words = unknown("adapter", config.adapter, list(OURS))
        raise InvalidSetting(f"{words}; or name a class of your own: package.module:Class{where}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except HeadraceError:
        raise
    except Exception as error:
        raise InvalidSetting(
            f'the adapter\'s module "{module_name}" cannot be loaded: '
            f"{type(error).__name__}: {error}{where}"
        ) from error
    found = getattr(module, attribute, None)
    if not isinstance(found, type) or not issubclass(found, QueueAdapter):
        shown = "there is none" if found is None else f"it is {found!r}"
        raise InvalidSetting(
            f'"{attribute}" in {module_name} must be a class made from '
            f"headrace.dispatchers.events.adapter.QueueAdapter, but {shown}{where}"
        )
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise InvalidSetting(f"{attribute} in {module_name} lacks: {lacking}{where}")
    return found


def _converted(config: QueueConfig, name: str, value: Any, hint: Any) -> Any:
    try:
        return msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(
            f"{config.adapter}: option {name} has the value {_shown(name, value)}: {error}"
            f"{config.at(f'options.{name}')}"
        ) from None
    except TypeError:
        return value  # a type of the user's own, which only their class knows


def _shown(name: str, value: Any) -> str:
    if any(word in name for word in SECRET):
        return "***"
    return repr(redacted(value)) if isinstance(value, str) else repr(value)
