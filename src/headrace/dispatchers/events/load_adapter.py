"""Makes the adapter that queue.yaml names: a built-in one or a class of the user's."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any, get_type_hints

import msgspec

from headrace.dispatchers.events.adapter import QueueAdapter
from headrace.dispatchers.events.config import QueueConfig
from headrace.engine.open import redacted
from headrace.errors import HeadraceError, InvalidSetting
from headrace.suggest import unknown

OURS = {
    "kafka": "headrace.dispatchers.events.adapters.kafka:KafkaAdapter",
    "redis_streams": "headrace.dispatchers.events.adapters.redis_streams:RedisStreamsAdapter",
    "nats": "headrace.dispatchers.events.adapters.nats:NatsAdapter",
    "rabbitmq": "headrace.dispatchers.events.adapters.rabbitmq:RabbitmqAdapter",
    "sqs": "headrace.dispatchers.events.adapters.sqs:SqsAdapter",
}
SECRET = ("password", "secret", "token", "credential", "key")


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
