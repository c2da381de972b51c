"""What parsing returns, what it is limited to, and which formats there are. No I/O."""

from __future__ import annotations

from enum import StrEnum

import msgspec

MEBIBYTE = 1024 * 1024


class Format(StrEnum):
    """A format that can be read."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    HWPX = "hwpx"
    HTML = "html"
    MD = "md"
    TXT = "txt"
    CSV = "csv"
    EML = "eml"

    @property
    def media_type(self) -> str:
        """Its media type, as in the header `Content-Type`."""
        return _MEDIA_TYPES[self]


_OFFICE = "application/vnd.openxmlformats-officedocument"
_MEDIA_TYPES = {
    Format.PDF: "application/pdf",
    Format.DOCX: f"{_OFFICE}.wordprocessingml.document",
    Format.PPTX: f"{_OFFICE}.presentationml.presentation",
    Format.XLSX: f"{_OFFICE}.spreadsheetml.sheet",
    Format.HWPX: "application/hwp+zip",
    Format.HTML: "text/html",
    Format.MD: "text/markdown",
    Format.TXT: "text/plain",
    Format.CSV: "text/csv",
    Format.EML: "message/rfc822",
}


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a document. It has no NUL and no lone surrogate, its lines end with `\\n`, and
    its characters are composed (NFC). `pages` is None where the format has none.
    """

    text: str
    format: Format
    media_type: str
    pages: int | None = None
    encoding: str | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a document may be at most. `entries`, `expanded` and `ratio` are for ZIP-based formats:
    the number of entries, the sum of their sizes, and how much larger than the file that sum is.
    """

    bytes: int = 256 * MEBIBYTE
    pages: int = 10_000
    characters: int = 20_000_000
    entries: int = 10_000
    expanded: int = 512 * MEBIBYTE
    ratio: int = 200


# Below this size a ratio says nothing: a page of blanks is packed very well.
RATIO_FROM = 16 * MEBIBYTE
