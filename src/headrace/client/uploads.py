"""Files that travel with a job."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec

from headrace.api_types.requests import JobRequest
from headrace.errors import InvalidInput

File = Path | tuple[str, bytes]
"""A file on disk, or a name with its content."""

_TEXTS = ("task", "queue", "key", "lane", "run_at")


async def read_files(files: Mapping[str, File]) -> dict[str, tuple[str, bytes]]:
    """The files by argument, each with its name. Read whole, so that they can be sent twice."""
    found = {}
    for argument, file in files.items():
        match file:
            case Path():
                found[argument] = (file.name, await asyncio.to_thread(_content, file))
            case name, content:
                found[argument] = (name, content)
    return found


def form_fields(request: JobRequest) -> dict[str, str]:
    """A request as the fields of a form: text as it is, everything else as JSON."""
    document = msgspec.json.decode(msgspec.json.encode(request), type=dict[str, msgspec.Raw])
    return {
        name: msgspec.json.decode(raw, type=str) if name in _TEXTS else bytes(raw).decode()
        for name, raw in document.items()
    }


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {str(file)!r}: {error.strerror}") from None
