"""One parser for each format, and the factory that chooses it."""

from __future__ import annotations

import email
import email.policy
import re
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any, ClassVar, Protocol

import kreuzberg

from headrace import ParserError
from headrace_ingest.parsing.parsed import Format, Parsed
from headrace_ingest.parsing.text import clean, decode

# Its cache would keep the unmasked text of every document in a folder.
_CONFIG = kreuzberg.ExtractionConfig(
    use_cache=False,
    enable_quality_processing=False,
    concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
)
_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml")
_MAIL_HEADERS = ("Subject", "From", "To", "Cc", "Date")


class Parser(Protocol):
    """Reads documents of one format."""

    def parse(self, path: Path) -> Parsed:
        """Return the text of a document; raise ParserError if it cannot be read."""


class RichParser:
    """Reads PDF and Office documents."""

    def __init__(self, kind: Format) -> None:
        self._kind = kind

    def parse(self, path: Path) -> Parsed:
        """Return the text of a document; raise ParserError if it cannot be read."""
        media_type = self._kind.media_type
        result = _extract(
            self._kind, lambda: kreuzberg.extract_file_sync(path, media_type, _CONFIG)
        )
        pages = None
        if self._kind is Format.PDF:
            pages = result.metadata.get("page_count")
        elif self._kind is Format.PPTX:
            with zipfile.ZipFile(path) as archive:
                pages = sum(bool(_SLIDE.fullmatch(entry)) for entry in archive.namelist())
        return _parsed(self._kind, result.content, pages=pages)


class TextParser:
    """Reads text, Markdown and CSV as they are, and HTML without its tags."""

    def __init__(self, kind: Format) -> None:
        self._kind = kind

    def parse(self, path: Path) -> Parsed:
        """Return the text of a document; raise ParserError if it cannot be read."""
        is_html = self._kind is Format.HTML
        decoded = decode(path.read_bytes(), html=is_html)
        if decoded is None:
            raise ParserError("its encoding is not known; save it as UTF-8")
        text = _text_of_html(decoded.text) if is_html else decoded.text
        return _parsed(self._kind, text, encoding=decoded.encoding)


class HwpxParser:
    """Reads HWPX, the XML format of Hangul."""

    def parse(self, path: Path) -> Parsed:
        """Return the text of a document; raise ParserError if it cannot be read."""

        # It takes as long to import as everything else together.
        from hwpx.tools.text_extractor import TextExtractor  # noqa: PLC0415

        def read() -> str:
            with TextExtractor(path) as extractor:
                return extractor.extract_text(object_behavior="skip", include_nested=True)

        return _parsed(Format.HWPX, _extract(Format.HWPX, read))


class MailParser:
    """Reads mails: their headers for people, and their text. Attachments are named, not read."""

    def parse(self, path: Path) -> Parsed:
        """Return the text of a document; raise ParserError if it cannot be read."""
        return _parsed(Format.EML, _extract(Format.EML, lambda: _text_of_mail(path.read_bytes())))


class ParserFactory:
    """Chooses the parser for a format."""

    _parsers: ClassVar[dict[Format, Callable[[], Parser]]] = {
        Format.PDF: lambda: RichParser(Format.PDF),
        Format.DOCX: lambda: RichParser(Format.DOCX),
        Format.PPTX: lambda: RichParser(Format.PPTX),
        Format.XLSX: lambda: RichParser(Format.XLSX),
        Format.HWPX: HwpxParser,
        Format.HTML: lambda: TextParser(Format.HTML),
        Format.MD: lambda: TextParser(Format.MD),
        Format.TXT: lambda: TextParser(Format.TXT),
        Format.CSV: lambda: TextParser(Format.CSV),
        Format.EML: MailParser,
    }

    @classmethod
    def get_parser(cls, format: str) -> Parser:
        """Return the parser for a format, such as `"pdf"`; raise ParserError if there is none."""
        try:
            return cls._parsers[Format(format)]()
        except ValueError:
            raise ParserError(f"no parser reads the format {format!r}") from None


def _extract(kind: Format, read: Callable[[], Any]) -> Any:
    """Call a library; whatever it raises becomes a ParserError with one sentence."""
    try:
        return read()
    except (ParserError, MemoryError):
        raise
    except BaseException as error:
        # A panic of a library in Rust is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = " ".join(str(error).split())
        if "password" in reason.lower() or "encrypted" in reason.lower():
            raise ParserError("it is locked with a password; remove it and try again") from error
        raise ParserError(
            f"it is no {kind.value} file that can be read, or it is damaged"
        ) from error


def _text_of_html(text: str) -> str:
    data = text.encode("utf-8", "replace")
    result = _extract(Format.HTML, lambda: kreuzberg.extract_bytes_sync(data, "text/html", _CONFIG))
    content: str = result.content
    return content


def _text_of_mail(data: bytes) -> str:
    message = email.message_from_bytes(data, EmailMessage, policy=email.policy.default)
    lines = [f"{header}: {message[header]}" for header in _MAIL_HEADERS if message[header]]
    body = message.get_body(("plain", "html"))
    if body is not None:
        content = body.get_content()
        lines += ["", _text_of_html(content) if body.get_content_subtype() == "html" else content]
    names = [part.get_filename() for part in message.iter_attachments()]
    lines += [f"Attachment: {name}" for name in names if name]
    return "\n".join(lines)


def _parsed(
    kind: Format, text: str, *, pages: int | None = None, encoding: str | None = None
) -> Parsed:
    return Parsed(
        text=clean(text), format=kind, media_type=kind.media_type, pages=pages, encoding=encoding
    )
