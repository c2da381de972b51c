"""A handler's signature, compiled once at registration into a decoder and a caller.

Binding a signature for every job would cost more than running a small one.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, get_origin, get_type_hints

import msgspec

from headrace.errors import InvalidArguments, InvalidSetting
from headrace.model.durable.context import Context
from headrace.model.limits.chunk import Chunk
from headrace.task.codec import check_exact, decode_hook, encode

Caller = Callable[[Any, Any], Any]


class Signature:
    """What a handler takes and returns."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        hints = hints_of(function)
        self.takes_context = bool(parameters) and is_context(parameters[0], hints)
        if self.takes_context:
            parameters = parameters[1:]
        if any(get_origin(hint) is Chunk or hint is Chunk for hint in hints.values()):
            raise InvalidSetting(
                f'task "{task}" takes a headrace.Chunk, so say how many jobs one call gets: '
                "@app.task(chunk=50)"
            )
        self._take(task, parameters, hints)
        self.call: Caller = _caller(function, parameters, takes_context=self.takes_context)

    def _take(self, task: str, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> None:
        self.task = task
        # Whether errors quote arguments that do not fit.
        self.quotes = True
        self.names = [parameter.name for parameter in parameters]
        self.required = [p.name for p in parameters if p.default is p.empty]
        # What the job has where an argument is not given, and the types of all.
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.kinds = {name: hints.get(name, Any) for name in self.names}
        self._positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        struct = _struct(task, parameters, hints)
        self._decoder = msgspec.json.Decoder(struct, dec_hook=decode_hook)

    def decode(self, args: bytes) -> Any:
        """Return stored JSON as typed arguments for `call(context, arguments)`."""
        return self._decoder.decode(args)

    def of_text(self, name: str, text: str) -> Any:
        """Return a text as this argument takes it: as a number, if it is typed `int`."""
        whole = self.kinds.get(name) is int and text.removeprefix("-").isdecimal()
        return int(text) if whole else text

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Check the arguments of a call and return them as JSON."""
        if args:
            kwargs = self._bind(args, kwargs, self._positional)
        try:
            encoded = encode(kwargs)
            if b"null" in encoded or encoded.count(b"{") > 1:
                check_exact(kwargs, encoded)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidArguments(f'task "{self.task}": {error}; pass plain data') from None
        self.check(encoded)
        return encoded

    def beside(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], files: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of a call by name, without those that are files."""
        given = self._bind(args, kwargs, [name for name in self._positional if name not in files])
        for name in given.keys() & files.keys():
            raise InvalidArguments(
                f'task "{self.task}": {name!r} is given as a file and as a value; leave one out'
            )
        return given

    def check(self, encoded: bytes) -> None:
        """Raise `InvalidArguments` for JSON that the handler cannot be called with."""
        try:
            self._decoder.decode(encoded)
        except (msgspec.DecodeError, ValueError) as error:
            raise self.refusal(error, encoded) from None

    def refusal(self, error: Exception, encoded: bytes) -> InvalidArguments:
        """Return the error for arguments that do not fit."""
        takes = ", ".join(self.names) or "no arguments"
        return InvalidArguments(
            f'task "{self.task}": {error}; {self._quoted(encoded)}it takes: {takes}'
        )

    def _quoted(self, encoded: bytes) -> str:
        if not self.quotes:
            return ""
        shown = encoded[:200].decode("utf-8", "replace") + ("…" if len(encoded) > 200 else "")
        return f"got {shown}; "

    def fault(self, name: str, value: Any) -> str | None:
        """Return why this value cannot be the argument of this name; None if it can."""
        try:
            msgspec.json.decode(encode(value), type=self.kinds[name], dec_hook=decode_hook)
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            return f"{error} ({value!r})"
        return None

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], positional: list[str]
    ) -> dict[str, Any]:
        if len(args) > len(positional):
            raise InvalidArguments(
                f'task "{self.task}": {len(args)} positional arguments, but it takes '
                f"{len(positional)} ({', '.join(positional) or 'none'})"
            )
        bound = dict(zip(positional, args, strict=False))
        for name in kwargs:
            if name in bound:
                raise InvalidArguments(f'task "{self.task}": argument {name!r} is given twice')
        return bound | kwargs


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a handler. Raises `InvalidSetting` where one cannot be read."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__  # an object that can be called
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InvalidSetting(
            f"the annotations of {function.__qualname__} cannot be read: {error}; "
            "import what they name at the top of the module"
        ) from None


def is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    """Return whether a handler wants its context there."""
    hint = hints.get(parameter.name)
    if isinstance(hint, type) and issubclass(hint, Context):
        return True
    return hint is None and parameter.name == "ctx"


def _struct(
    task: str, parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidSetting(
                f'task "{task}" takes *{parameter.name}; name its arguments, so that they can be '
                "checked when a job is enqueued"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidSetting(
                f'task "{task}": argument {parameter.name!r} is positional-only; remove the "/"'
            )
        kind = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            # UNSET tells "not given" apart, so that the function's own default is used.
            fields.append((parameter.name, kind | msgspec.UnsetType, msgspec.UNSET))
    try:
        struct = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False
        )
        msgspec.json.Decoder(struct, dec_hook=decode_hook)
    except TypeError as error:
        raise InvalidSetting(
            f'task "{task}" has arguments that JSON cannot hold: {error}'
        ) from None
    return struct


def _caller(
    function: Callable[..., Any], parameters: list[inspect.Parameter], *, takes_context: bool
) -> Caller:
    """Return `call(context, arguments)`: direct attribute access, no binding."""
    names = [parameter.name for parameter in parameters]
    optional = [p.name for p in parameters if p.default is not p.empty]
    if optional:

        def call(context: Any, arguments: Any) -> Any:
            given = {name: getattr(arguments, name) for name in names}
            for name in optional:
                if given[name] is msgspec.UNSET:
                    del given[name]
            return function(context, **given) if takes_context else function(**given)

        return call
    if any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters):

        def call_by_name(context: Any, arguments: Any) -> Any:
            given = {name: getattr(arguments, name) for name in names}
            return function(context, **given) if takes_context else function(**given)

        return call_by_name
    return _positional_caller(function, names, takes_context=takes_context)


def _positional_caller(
    function: Callable[..., Any], names: list[str], *, takes_context: bool
) -> Caller:
    """Return the fastest caller: one C call reads all the arguments."""
    if not names:
        return (lambda context, _: function(context)) if takes_context else lambda *_: function()
    read = operator.attrgetter(*names)
    if len(names) == 1:
        if takes_context:
            return lambda context, arguments: function(context, read(arguments))
        return lambda _, arguments: function(read(arguments))
    if takes_context:
        return lambda context, arguments: function(context, *read(arguments))
    return lambda _, arguments: function(*read(arguments))
