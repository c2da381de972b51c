"""The signature of a handler of chunks: `store(chunk: headrace.Chunk[Row])`.

The arguments of a job are the fields of `Row`: a dataclass, a msgspec Struct, a TypedDict or a
pydantic model. So jobs are enqueued, checked and described as those of any other task.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NotRequired, Required, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from headrace.errors import InvalidSetting
from headrace.model.limits.chunk import Chunk
from headrace.task.signature import Signature, hints_of, is_context

_HOW = (
    "write `async def handler(chunk: headrace.Chunk[Row])`, where Row is a dataclass, a msgspec "
    "Struct, a TypedDict or a pydantic model with the arguments of one job"
)


class ChunkSignature(Signature):
    """What one job of a handler of chunks takes."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self.takes_context = False
        self.row = _row_of(task, function)
        hints = _hints(task, self.row)
        parameters = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for name, default in _fields_of(task, self.row, hints)
        ]
        self._take(task, parameters, {name: _plain(hint) for name, hint in hints.items()})
        # Those that a constructor makes: a lane cannot read them, a form cannot show them.
        self.defaults = {
            name: value for name, value in self.defaults.items() if value is not msgspec.UNSET
        }
        self.call = lambda chunk, _: function(chunk)

    def decode(self, args: bytes) -> Any:
        """Return stored JSON as an object of the handler's class."""
        found = self._decoder.decode(args)
        given = {
            name: value
            for name in self.names
            if (value := getattr(found, name)) is not msgspec.UNSET
        }
        return self.row(**given)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Check the arguments of a call, by name or as one object, and return them as JSON."""
        if len(args) == 1 and not kwargs and self._is_row(args[0]):
            return super().encode((), self._fields(args[0]))
        return super().encode(args, kwargs)

    def check(self, encoded: bytes) -> None:
        """Raise `InvalidArguments` for JSON that makes no object of the handler's class."""
        super().check(encoded)
        try:
            self.decode(encoded)
        except (TypeError, ValueError) as error:
            raise self.refusal(error, encoded) from None

    def _is_row(self, value: Any) -> bool:
        return isinstance(value, Mapping if is_typeddict(self.row) else self.row)

    def _fields(self, row: Any) -> dict[str, Any]:
        if isinstance(row, Mapping):
            return dict(row)
        dump = getattr(row, "model_dump", None)
        if dump is not None:
            dumped: dict[str, Any] = dump(mode="json", by_alias=True)
            return dumped
        return {name: getattr(row, name) for name in self.names}


def _row_of(task: str, function: Callable[..., Any]) -> Any:
    parameters = list(inspect.signature(function).parameters.values())
    hints = hints_of(function)
    if parameters and is_context(parameters[0], hints):
        raise InvalidSetting(
            f'task "{task}" has chunk=, so its handler gets no Context: stages, sleeps and waits '
            f"belong to one job; {_HOW}"
        )
    taken = hints.get(parameters[0].name) if len(parameters) == 1 else None
    if taken is None or get_origin(taken) is not Chunk:
        shown = ", ".join(parameter.name for parameter in parameters) or "nothing"
        raise InvalidSetting(
            f'task "{task}" has chunk=, so its handler takes one headrace.Chunk[…], but it takes '
            f"{shown}; {_HOW}"
        )
    return get_args(taken)[0]


def _fields_of(task: str, row: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of one job with their defaults: UNSET for one that is made anew."""
    empty, unset = inspect.Parameter.empty, msgspec.UNSET
    if is_typeddict(row):
        for name, hint in hints.items():
            # Where annotations are text, the class itself does not know which are required.
            said = get_origin(hint)
            optional = said is NotRequired or (
                said is not Required and name not in row.__required_keys__
            )
            yield name, unset if optional else empty
    elif dataclasses.is_dataclass(row):
        for each in dataclasses.fields(row):
            made = each.default_factory is not dataclasses.MISSING
            if each.init:
                no_default = each.default is dataclasses.MISSING
                yield each.name, unset if made else empty if no_default else each.default
    elif isinstance(row, type) and issubclass(row, msgspec.Struct):
        for field in msgspec.structs.fields(row):
            none = field.default is msgspec.NODEFAULT
            yield field.name, empty if field.required else unset if none else field.default
    elif hasattr(row, "model_validate"):
        for name, info in row.model_fields.items():
            shown = unset if info.default_factory is not None else info.default
            yield info.alias or name, empty if info.is_required() else shown
    else:
        raise InvalidSetting(f'task "{task}": {row!r} does not name arguments; {_HOW}')


def _hints(task: str, row: Any) -> dict[str, Any]:
    """Return the types of the fields, by the names of the arguments."""
    if not isinstance(row, type):
        return {}
    try:
        hints = get_type_hints(row, include_extras=True)
    except NameError as error:
        raise InvalidSetting(
            f'task "{task}": the annotations of {row.__qualname__} cannot be read: {error}; import '
            "what they name at the top of the module"
        ) from None
    for name, info in getattr(row, "model_fields", {}).items():
        if info.alias:
            hints[info.alias] = hints[name]
    return hints


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
