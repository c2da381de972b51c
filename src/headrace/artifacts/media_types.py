"""The media type of an upload: what its first bytes say, then its name, then its sender.

Bytes are believed first, because names and senders err: a zip that is called `report.docx` is a
zip. Text has no signature, so its name decides, and its sender where the name says nothing.
"""

from __future__ import annotations

import functools
import mimetypes
import re

HEAD = 65_536
"""How many bytes at the beginning are looked at."""

TEXT = "text/plain"
BINARY = "application/octet-stream"
ZIP = "application/zip"

_OFFICE = "application/vnd.openxmlformats-officedocument"
# The folder of a document's main part in a zip.
_OFFICE_FOLDERS = (
    (b"word/", f"{_OFFICE}.wordprocessingml.document"),
    (b"xl/", f"{_OFFICE}.spreadsheetml.sheet"),
    (b"ppt/", f"{_OFFICE}.presentationml.presentation"),
)
_MAIN_PARTS = (b"word/document.xml", b"xl/workbook.xml", b"ppt/presentation.xml")
_ZIPS = frozenset({ZIP} | {media_type for _, media_type in _OFFICE_FOLDERS})
# Bytes without their signature are not of these types, whatever anybody says.
_SIGNED = frozenset({"application/pdf", "image/png", "image/jpeg", "image/gif"} | _ZIPS)
_TEXTS = frozenset(
    {"application/json", "application/javascript", "application/xml", "application/yaml"}
    | {"application/x-ndjson", "application/x-sh", "application/toml", "application/sql"}
)
_HTML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_ZIP_ENTRY = re.compile(rb"PK\x03\x04.{22}(..)..", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_BYTE_ORDER = (b"\xff\xfe", b"\xfe\xff")


def media_type_of(head: bytes, name: str, said: str | None = None) -> str:
    """Return the media type of a file that begins with `head`, at least `HEAD` bytes if it has so
    many. `said` is what its sender called it.
    """
    found = _signature(head)
    if found is not None:
        return found
    by_name = _by_name(name)
    plain = None if said is None else said.partition(";")[0].strip().lower()
    if head.startswith(_BYTE_ORDER) or not _CONTROL.search(head):
        for guess, full in ((by_name, by_name), (plain, said)):
            if guess is not None and full is not None and _is_text(guess):
                return full
        return TEXT if head else BINARY
    for guess, full in ((plain, said), (by_name, by_name)):
        if full is not None and guess != BINARY and guess not in _SIGNED and not _is_text(guess):
            return full
    return BINARY


def _signature(head: bytes) -> str | None:
    # Only uploads need it, and it has no annotations.
    import filetype  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415

    if _HTML.match(head):
        return "text/html"
    found: str | None = filetype.guess_mime(head) if head else None
    return _inside_zip(head) if found in _ZIPS else found


def _inside_zip(head: bytes) -> str:
    """Tell a document from other zips: by the names of its first parts, in whatever order."""
    names = []
    for entry in _ZIP_ENTRY.finditer(head):
        length = int.from_bytes(entry[1], "little")
        names.append(head[entry.end() : entry.end() + length])
    if b"[Content_Types].xml" in names or any(each in _MAIN_PARTS for each in names):
        # The first one: documents contain others, such as the table behind a chart.
        for each in names:
            for folder, media_type in _OFFICE_FOLDERS:
                if each.startswith(folder):
                    return media_type
    return ZIP


@functools.cache
def _table() -> mimetypes.MimeTypes:
    """Return Python's own table, the same on every machine."""
    return mimetypes.MimeTypes()


def _by_name(name: str) -> str | None:
    guess, encoding = _table().guess_type(name.replace(":", "_"), strict=False)
    return guess if encoding is None else None


def _is_text(media_type: str | None) -> bool:
    return media_type is not None and (
        media_type.startswith("text/")
        or media_type in _TEXTS
        or media_type.endswith(("+xml", "+json"))
    )
