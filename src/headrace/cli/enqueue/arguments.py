"""A job's arguments as they are typed: key=value pairs, JSON, or a file of JSON lines."""

from __future__ import annotations

import string
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from headrace.cli.command import argument, option, together
from headrace.errors import InvalidArguments, InvalidInput, PayloadTooLarge

# For a command, which passes them on to `read_arguments`.
argument_options = together(
    argument("values", "[NAME=VALUE]...", "Arguments: JSON if it parses, else text.", nargs=-1),
    option("--args", "JSON", "Arguments as JSON, @file, or - for stdin."),
)
SPOOL = 8 * 1_048_576


def read_arguments(pairs: Sequence[str], given: str | None, limit: int) -> dict[str, Any]:
    """The arguments from `--args`, with single `key=value` pairs on top."""
    arguments = {} if given is None else _object(given, limit)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidArguments(f"{pair!r} is not an argument; write name=value, e.g. to=ada")
        arguments[name] = typed(text)
    return arguments


def typed(text: str) -> Any:
    """A value as JSON if it is JSON (7, true, [1, 2], "7"), else as text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def read_object(option: str, given: str) -> dict[str, Any]:
    """A JSON object that was typed."""
    try:
        return msgspec.json.decode(given.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidArguments(
            f"""{option} is not a JSON object: {error}; write '{{"name": value}}'"""
        ) from None


def _object(given: str, limit: int) -> dict[str, Any]:
    where = "--args"
    if given == "-":
        where, content = "--args - (stdin)", _read(sys.stdin.buffer, limit)
    elif given.startswith("@"):
        where = f"--args {given}"
        with open_file(given[1:]) as file:
            content = _read(file, limit)
    else:
        content = given.encode("utf-8", "surrogateescape")
    try:
        decoded = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise InvalidArguments(
            f"{where} is not JSON: {error}; write an object such as "
            """'{"to": "ada"}', @file.json, or - for stdin"""
        ) from None
    if not isinstance(decoded, dict):
        raise InvalidArguments(
            f"{where} is a JSON {type(decoded).__name__}; it has to be an object: "
            """'{"name": value}'"""
        )
    return decoded


def _read(file: IO[bytes], limit: int) -> bytes:
    # JSON may be spread out over more bytes than it needs, but not without end.
    bound = max(4 * limit, SPOOL)
    content = file.read(bound + 1)
    if len(content) > bound:
        raise PayloadTooLarge(
            f"the arguments take more than {bound:,} bytes, the limit is {limit:,}; keep large "
            "data elsewhere and pass a reference"
        )
    return content


def open_file(name: str) -> IO[bytes]:
    """Open a file to read, or say why it cannot be read."""
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot read {name!r}: {error.strerror}") from None


class Lines:
    """A file of JSON lines that can be read twice: to check all of it, then to store it."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = "stdin" if name == "-" else name
        self._limit = max(4 * limit, 65_536)
        self._file = _spooled() if name == "-" else open_file(name)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Numbered lines, without empty ones. Memory is bounded by the longest line."""
        self._file.seek(0)
        number = 0
        while line := self._file.readline(self._limit + 1):
            number += 1
            if len(line) > self._limit:
                raise PayloadTooLarge(
                    f"{self.name} line {number} is longer than {self._limit:,} bytes"
                )
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line := line.strip():
                yield number, line

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _spooled() -> IO[bytes]:
    # Stays open for the second pass; Lines.close() lets go of it.
    file = tempfile.SpooledTemporaryFile(max_size=SPOOL)  # noqa: SIM115
    while chunk := sys.stdin.buffer.read(1_048_576):
        file.write(chunk)
    return file


class KeyTemplate:
    """A key for each line, made from its arguments and its number: "import:{line}"."""

    def __init__(self, template: str) -> None:
        try:
            fields = [field for _, field, *_ in string.Formatter().parse(template)]
        except ValueError as error:
            raise InvalidInput(f"--key {template!r}: {error}") from None
        named = [field for field in fields if field is not None]
        if not named or not all(field.isidentifier() for field in named):
            raise InvalidInput(
                f"--key {template!r} would make one job of all lines; name an argument in it, or "
                'the line: "import:{line}"'
            )
        self._template = template

    def key(self, number: int, line: bytes) -> str:
        """The key of one line."""
        arguments = msgspec.json.decode(line)
        try:
            return self._template.format_map({"line": number} | arguments)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"line {number}: --key {self._template!r} cannot be made from it: {error!r}"
            ) from None
