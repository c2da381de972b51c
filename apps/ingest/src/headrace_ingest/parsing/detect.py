"""Which format a file is in: its bytes decide first, then its name."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from kreuzberg import detect_mime_type

from headrace import ParserError, ValidationError
from headrace_ingest.names import shown
from headrace_ingest.parsing.archive import check_archive, format_of_archive
from headrace_ingest.parsing.parsed import MEBIBYTE, Format, Limits
from headrace_ingest.parsing.text import decode

_HEAD = 64 * 1024
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_TEXT_ENDINGS = {
    "md": Format.MD,
    "markdown": Format.MD,
    "csv": Format.CSV,
    "html": Format.HTML,
    "htm": Format.HTML,
    "xhtml": Format.HTML,
    "eml": Format.EML,
}
READABLE = ", ".join(kind.value for kind in Format)


def detect_format(path: Path, name: str, limits: Limits) -> Format:
    """Return the format of a file that is neither empty nor too large nor a ZIP bomb.

    Files that cannot be read are refused with a sentence that says why.
    """
    size = path.stat().st_size
    if not size:
        raise ValidationError(f"{shown(name)} is empty.")
    if size > limits.bytes:
        raise ValidationError(
            f"{shown(name)} has {size / MEBIBYTE:,.0f} MiB; at most "
            f"{limits.bytes // MEBIBYTE:,} MiB are read."
        )
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_ZIP):
        found = format_of_archive(path, check_archive(path, name, limits))
        if found is None:
            raise _unreadable(name, "a ZIP archive")
        return found
    if b"%PDF-" in head[:1024]:
        return Format.PDF
    if head.startswith(_OLE):
        if _LOCKED_OFFICE in path.read_bytes():
            raise ParserError(f"{shown(name)} is locked with a password; remove it and try again.")
        raise _unreadable(name, "an old Office or HWP file; save it as docx, pptx, xlsx or hwpx")
    return _format_of_text(head, path, name)


def _format_of_text(head: bytes, path: Path, name: str) -> Format:
    media_type = _media_type(head)
    if media_type is not None and not media_type.startswith(("text/", "application/")):
        raise _unreadable(name, f"of type {media_type}")
    if decode(path.read_bytes(), html=True) is None:
        raise _unreadable(name, "no text, and its bytes are of no known type")
    ending = PurePosixPath(name.lower()).suffix.removeprefix(".")
    if ending in _TEXT_ENDINGS:
        return _TEXT_ENDINGS[ending]
    return Format.HTML if media_type in ("text/html", "application/xhtml+xml") else Format.TXT


def _media_type(head: bytes) -> str | None:
    try:
        return detect_mime_type(head)
    except Exception:  # it raises RuntimeError for bytes that it does not know
        return None


def _unreadable(name: str, what: str) -> ValidationError:
    return ValidationError(f"{shown(name)} is {what}; files of these types are read: {READABLE}.")
