"""Every format is read; what cannot be read ends in one clear sentence."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hwpx import HwpxDocument
from ingest_support.office import make_docx, make_pptx, make_xlsx, make_zip, understate_sizes
from ingest_support.pdf import text_pdf

from headrace import ParserError, ValidationError
from headrace_ingest.parsing import Format, Limits, ParserFactory, parse_file

KOREAN = "제1조 이 규정은 휴가에 관한 사항을 정한다. 담당 부서는 인사팀이다."


@pytest.fixture
def save(tmp_path: Path):
    def save(data: bytes) -> Path:
        path = tmp_path / "upload"
        path.write_bytes(data)
        return path

    return save


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.pdf", text_pdf("annual leave"), Format.PDF),
        ("a.docx", make_docx("annual leave", "second"), Format.DOCX),
        ("a.pptx", make_pptx("annual leave", "two"), Format.PPTX),
        ("a.xlsx", make_xlsx("annual leave", "15"), Format.XLSX),
        ("a.html", b"<html><body><h1>annual leave</h1></body></html>", Format.HTML),
        ("a.md", b"# annual leave\n\ntext", Format.MD),
        ("a.txt", b"annual leave", Format.TXT),
        ("a.csv", b"annual leave,15\n", Format.CSV),
        ("a.eml", b"Subject: annual leave\r\nFrom: a@example.com\r\n\r\nbody\r\n", Format.EML),
    ],
)
def test_every_format_is_read(save, name: str, data: bytes, expected: Format) -> None:
    parsed = parse_file(save(data), name)
    assert "annual leave" in parsed.text
    assert parsed.format == expected
    assert parsed.media_type == expected.media_type


def test_a_real_hwpx_is_read_with_its_tables(tmp_path: Path) -> None:
    document = HwpxDocument.new()
    document.add_paragraph(KOREAN)
    document.add_table(2, 2).set_cell_text(0, 0, "연차 15일")
    document.save_to_path(tmp_path / "규정.hwpx")
    parsed = parse_file(tmp_path / "규정.hwpx", "규정.hwpx")
    assert KOREAN in parsed.text
    assert "연차 15일" in parsed.text
    assert parsed.format == Format.HWPX


@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "a", "a.exe", "a.xlsx"])
def test_the_bytes_decide_before_the_name(save, name: str) -> None:
    assert parse_file(save(make_docx("annual leave")), name).format == Format.DOCX
    assert parse_file(save(text_pdf("annual leave")), name).format == Format.PDF


def test_pages_are_counted(save) -> None:
    assert parse_file(save(text_pdf("one", "two", "three")), "a.pdf").pages == 3
    assert parse_file(save(make_pptx("one", "two")), "a.pptx").pages == 2
    assert parse_file(save(b"one"), "a.txt").pages is None


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("cp949", b""),
        ("euc-kr", b""),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.md"])
def test_korean_text_is_decoded(save, encoding: str, mark: bytes, name: str) -> None:
    assert parse_file(save(mark + KOREAN.encode(encoding)), name).text == KOREAN


def test_a_cp949_page_is_decoded_before_it_is_parsed(save) -> None:
    page = f"<html><head><meta charset=euc-kr></head><body><p>{KOREAN} 똠방각하</p></body></html>"
    assert parse_file(save(page.encode("cp949")), "a.html").text == f"{KOREAN} 똠방각하"


def test_a_mail_in_korean_is_read_and_its_attachment_named(save) -> None:
    mail = (
        (
            "Subject: =?euc-kr?B?"
            + codecs.encode("휴가".encode("euc-kr"), "base64").decode().strip()
            + "?=\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n"
            "Content-Type: text/plain; charset=euc-kr\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
        ).encode()
        + KOREAN.encode("cp949")
        + (
            b"\r\n--x\r\nContent-Type: application/pdf\r\n"
            b"Content-Disposition: attachment; filename=rules.pdf\r\n\r\nxx\r\n--x--\r\n"
        )
    )
    text = parse_file(save(mail), "a.eml").text
    assert "Subject: 휴가" in text
    assert KOREAN in text
    assert "Attachment: rules.pdf" in text


def test_text_is_composed_and_free_of_what_stores_refuse(save) -> None:
    data = ("\u1112\u1161\u11ab\u1100\u1173\u11af\r\na\x01b" + "." * 200).encode()
    assert parse_file(save(data), "a.txt").text == "한글\nab" + "." * 200


@pytest.mark.parametrize(
    ("data", "name", "error", "words"),
    [
        (b"", "a.txt", ValidationError, "is empty"),
        (b"  \n\t ", "a.txt", ParserError, "has no text"),
        (text_pdf(""), "scan.pdf", ParserError, "has no text"),
        (make_docx(""), "a.docx", ParserError, "has no text"),
        (text_pdf("text")[:300], "a.pdf", ParserError, "damaged"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 20, "a.pdf", ParserError, "damaged"),
        (make_docx("text")[:400], "a.docx", ParserError, "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "a.pdf", ValidationError, "image/png"),
        (b"\x7fELF" + bytes(range(256)), "a.txt", ValidationError, "no known type"),
        (make_zip({"a.txt": "text"}), "a.docx", ValidationError, "a ZIP archive"),
        (
            bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500) + "EncryptedPackage".encode("utf-16-le"),
            "a.docx",
            ParserError,
            "locked with a password",
        ),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500), "a.hwp", ValidationError, "old Office"),
    ],
)
def test_what_cannot_be_read_ends_in_one_sentence(
    save, data: bytes, name: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        parse_file(save(data), name)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f'"{name}"')
    assert message.endswith(".")
    assert "\n" not in message


LIMITS = Limits(
    bytes=100_000, pages=3, characters=1_000, entries=20, expanded=50_000_000, ratio=100
)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a" * 100_001, "MiB are read"),
        (text_pdf(*"abcd"), "4 pages"),
        (b"a " * 600, "1,200 characters"),
        (make_docx("a", more={f"word/{n}.xml": "a" for n in range(30)}), "entries"),
        (make_docx("a", more={"word/media/a.png": bytes(51_000_000)}), "would expand to 48 MiB"),
        (make_docx("a", more={"word/media/a.png": bytes(20_000_000)}), "times its size"),
        (
            understate_sizes(make_docx("a", more={"word/media/a.png": bytes(20_000_000)})),
            "larger than its directory says",
        ),
    ],
)
def test_what_is_too_much_is_refused(save, data: bytes, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        parse_file(save(data), "a.bin", limits=LIMITS)


def test_a_bomb_is_refused_before_it_is_expanded(save, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(make_docx("a", more={"word/media/a.png": bytes(51_000_000)}))
    monkeypatch.setattr("zlib.decompressobj", None)
    with pytest.raises(ValidationError, match="would expand"):
        parse_file(path, "a.docx", limits=LIMITS)


def test_nothing_is_kept_in_a_cache(save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(make_docx("a very special sentence"))
    monkeypatch.chdir(tmp_path)
    parse_file(path, "a.docx")
    assert [entry.name for entry in tmp_path.iterdir()] == ["upload"]


def test_an_unknown_format_has_no_parser() -> None:
    with pytest.raises(ParserError, match="'xyz'"):
        ParserFactory.get_parser("xyz")
