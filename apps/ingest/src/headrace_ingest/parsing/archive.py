"""ZIP-based documents: what is inside, and whether it is safe to expand them."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from headrace import ParserError, ValidationError
from headrace_ingest.names import shown
from headrace_ingest.parsing.parsed import MEBIBYTE, RATIO_FROM, Format, Limits

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_STEP = 256 * 1024
_ENCRYPTED = 0x1
_OFFICE_PARTS = {"word/": Format.DOCX, "ppt/": Format.PPTX, "xl/": Format.XLSX}


def check_archive(path: Path, name: str, limits: Limits) -> list[str]:
    """Return the names of the entries of a ZIP file that is safe to expand.

    The directory is believed first, before anything is expanded. Then every entry is inflated in
    small steps, kept nowhere, and stopped where it goes beyond the size that the directory gave.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            entries = archive.infolist()
            _check_directory(entries, path.stat().st_size, name, limits)
            for entry in entries:
                _check_entry(file, entry, name)
            return [entry.filename for entry in entries]
    except (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, ValueError) as error:
        raise ParserError(f"{shown(name)} is damaged: its ZIP structure cannot be read.") from error


def format_of_archive(path: Path, entries: list[str]) -> Format | None:
    """Return the format of a ZIP file that was checked, or None if it is no document."""
    if "mimetype" in entries:
        with zipfile.ZipFile(path) as archive, archive.open("mimetype") as file:
            if file.read(100).strip() == b"application/hwp+zip":
                return Format.HWPX
    if "[Content_Types].xml" in entries:
        for folder, kind in _OFFICE_PARTS.items():
            if any(entry.startswith(folder) for entry in entries):
                return kind
    return None


def _check_directory(entries: list[zipfile.ZipInfo], size: int, name: str, limits: Limits) -> None:
    if len(entries) > limits.entries:
        raise ValidationError(
            f"{shown(name)} has {len(entries):,} entries; at most {limits.entries:,} are read."
        )
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise ParserError(f"{shown(name)} is locked with a password; remove it and try again.")
    expanded = sum(entry.file_size for entry in entries)
    if expanded > limits.expanded:
        raise ValidationError(
            f"{shown(name)} would expand to {expanded // MEBIBYTE:,} MiB; "
            f"at most {limits.expanded // MEBIBYTE:,} MiB are read."
        )
    if expanded > RATIO_FROM and expanded > size * limits.ratio:
        raise ValidationError(
            f"{shown(name)} would expand to {expanded // size:,} times its size; "
            f"at most {limits.ratio:,} times are read."
        )


def _check_entry(file: BinaryIO, entry: zipfile.ZipInfo, name: str) -> None:
    """Inflate one entry, and refuse it if it is larger than it says."""
    file.seek(entry.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile("no local header")
    file.seek(name_length + extra_length, 1)
    if entry.compress_type == zipfile.ZIP_STORED:
        if entry.compress_size != entry.file_size:
            raise zipfile.BadZipFile("sizes differ")
        return
    if entry.compress_type != zipfile.ZIP_DEFLATED:
        raise NotImplementedError("compression")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    left, seen = entry.compress_size, 0
    while left and not inflate.eof:
        data = file.read(min(left, _STEP))
        if not data:
            raise zipfile.BadZipFile("cut off")
        left -= len(data)
        while data:
            seen += len(inflate.decompress(data, _STEP))
            if seen > entry.file_size:
                raise ValidationError(
                    f"{shown(name)} holds an entry that is larger than its directory says."
                )
            data = inflate.unconsumed_tail
