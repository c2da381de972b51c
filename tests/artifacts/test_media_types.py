"""The media type of an upload is what its bytes say; text falls back to its name."""

from __future__ import annotations

import io
import zipfile

import pytest

from headrace.artifacts.media_types import media_type_of

OFFICE = "application/vnd.openxmlformats-officedocument"
DOCX = f"{OFFICE}.wordprocessingml.document"
XLSX = f"{OFFICE}.spreadsheetml.sheet"
PPTX = f"{OFFICE}.presentationml.presentation"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 17
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
CP949 = "안녕하세요 여러분. 규정 문서입니다.\n".encode("cp949")


def a_zip(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "<x/>" * 50)
    return made.getvalue()


def office(folder: str, *, first: str = "[Content_Types].xml") -> bytes:
    parts = ["[Content_Types].xml", "_rels/.rels", "docProps/app.xml", f"{folder}/main.xml"]
    return a_zip(first, *(part for part in parts if part != first))


@pytest.mark.parametrize(
    ("head", "name", "said", "expected"),
    [
        (PDF, "a.txt", "text/plain", "application/pdf"),
        (PNG, "a.pdf", "application/pdf", "image/png"),
        (office("word"), "a.bin", None, DOCX),
        (office("xl"), "a.docx", DOCX, XLSX),
        (office("ppt"), "a.zip", "application/zip", PPTX),
        (office("word", first="docProps/app.xml"), "a", None, DOCX),
        (a_zip("a.txt"), "report.docx", DOCX, "application/zip"),
        (a_zip("xl/notes.txt"), "a.xlsx", XLSX, "application/zip"),
        (b"<!DOCTYPE html>\n<html>", "a.txt", None, "text/html"),
        (b'\n <html lang="ko">', "a", None, "text/html"),
        (b"hello\n", "a.txt", None, "text/plain"),
        (b"a,b\n1,2\n", "a.csv", "application/octet-stream", "text/csv"),
        (b'{"a": 1}', "a.json", None, "application/json"),
        (b"hello\n", "a.pdf", "application/pdf", "text/plain"),
        (b"hello\n", "a", "text/markdown; charset=utf-8", "text/markdown; charset=utf-8"),
        ("안녕하세요".encode(), "규정.txt", None, "text/plain"),
        (CP949, "규정.txt", "application/pdf", "text/plain"),
        ("가".encode("utf-16"), "a.txt", None, "text/plain"),
        (b"\x00\x01\x02\x03\x04", "a.pdf", "application/pdf", "application/octet-stream"),
        (b"\x00\x01\x02\x03\x04", "a.hwp", "application/x-hwp", "application/x-hwp"),
        (b"\x00\x01\x02\x03\x04", "a.txt", "text/plain", "application/octet-stream"),
        (b"", "a.txt", None, "text/plain"),
        (b"", "a.docx", DOCX, "application/octet-stream"),
    ],
)
def test_bytes_are_believed_before_names_and_senders(
    head: bytes, name: str, said: str | None, expected: str
) -> None:
    assert media_type_of(head, name, said) == expected


def test_a_document_that_contains_another_is_what_it_is_itself() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as file:
        for name in ("[Content_Types].xml", "ppt/presentation.xml"):
            file.writestr(name, "<x/>")
        file.writestr("ppt/embeddings/table.xlsx", office("xl"))
    assert media_type_of(made.getvalue(), "a") == PPTX
