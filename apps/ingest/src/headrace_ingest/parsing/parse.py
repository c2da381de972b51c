"""Read one document, within limits."""

from __future__ import annotations

import os
from pathlib import Path

from headrace import ParserError, ValidationError
from headrace_ingest.names import shown
from headrace_ingest.parsing.detect import detect_format
from headrace_ingest.parsing.parsed import Format, Limits, Parsed
from headrace_ingest.parsing.parsers import ParserFactory

DEFAULT_LIMITS = Limits()
# For tasks that parse in a process of their own: another attempt would end in the same way.
NEVER_RETRY = ("ChildDied", "MemoryError")
# A document of the largest size that is read, and what the libraries make of it.
MEMORY_LIMIT = 2 * 1024 * 1024 * 1024


def parse_file(
    path: str | os.PathLike[str], name: str, *, limits: Limits = DEFAULT_LIMITS
) -> Parsed:
    """Return the text of a document. `name` is what its sender calls it.

    Raises ValidationError for what is refused by its type, size or structure, and ParserError for
    what cannot be read or has no text; each with one sentence. It may take long or much memory for
    hostile files: call it in a task with `isolate="process"`, a `timeout` and a `memory_limit`.
    """
    file = Path(path)
    kind = detect_format(file, name, limits)
    try:
        parsed = ParserFactory.get_parser(kind).parse(file)
    except ParserError as error:
        raise ParserError(f"{shown(name)} cannot be read: {error}.") from error
    if parsed.pages is not None and parsed.pages > limits.pages:
        raise ValidationError(
            f"{shown(name)} has {parsed.pages:,} pages; at most {limits.pages:,} are read."
        )
    if len(parsed.text) > limits.characters:
        raise ValidationError(
            f"{shown(name)} has {len(parsed.text):,} characters; "
            f"at most {limits.characters:,} are read."
        )
    if not parsed.text.strip():
        hint = "; text in pictures is not read" if kind is Format.PDF else ""
        raise ParserError(f"{shown(name)} has no text{hint}.")
    return parsed
