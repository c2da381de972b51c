"""Names of files and paths are cleaned, or refused where they cannot be meant."""

from __future__ import annotations

import pytest

from headrace import ValidationError
from headrace_ingest.names import clean_name, clean_path, is_within


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("규정.docx", "규정.docx"),
        ("\u1112\u1161\u11ab.pdf", "한.pdf"),
        ("folder/sub/a.pdf", "a.pdf"),
        ("C:\\fakepath\\a.pdf", "a.pdf"),
        ("a\u200b\u2060b\u00ad.txt", "ab.txt"),
        ("  a   b.txt ", "a b.txt"),
        (".gitignore", ".gitignore"),
        ("a..b.txt", "a..b.txt"),
        ("\ud800.txt", "?.txt"),
    ],
)
def test_a_name_is_cleaned(given: str, cleaned: str) -> None:
    assert clean_name(given) == cleaned
    assert clean_name(cleaned) == cleaned


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        ".",
        "...",
        "/",
        "../a.txt",
        "a/../../b",
        "..\\b",
        ".\u200b./x",
        "a\0.txt",
        "a\nb.txt",
    ],
)
def test_a_name_that_cannot_be_meant_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        clean_name(name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "mark", [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
@pytest.mark.parametrize("place", ["{}a.txt", "invoice{}fdp.exe", "a.txt{}", "folder{}/a.txt"])
def test_a_name_that_is_read_otherwise_than_written_is_refused(mark: int, place: str) -> None:
    """Wherever the mark is: a path would be shown with it elsewhere."""
    for clean, given in ((clean_name, place), (clean_path, f"/{place}")):
        with pytest.raises(ValidationError) as caught:
            clean(given.format(chr(mark)))
        said = str(caught.value)
        assert said.isprintable()
        assert f"U+{mark:04X}" in said
        assert f"\\u{mark:04x}" in said


def test_a_long_name_keeps_its_ending() -> None:
    cleaned = clean_name("가" * 300 + ".docx")
    assert len(cleaned) == 200
    assert cleaned.endswith("….docx")
    assert clean_name(cleaned) == cleaned
    assert len(clean_name("a" * 100 + "." + "b" * 300)) <= 200


@pytest.mark.parametrize(
    ("given", "cleaned"),
    [
        ("/", "/"),
        ("/hr", "/hr"),
        ("/hr/", "/hr"),
        (" /인사/휴가 ", "/인사/휴가"),
        ("/a b/c", "/a b/c"),
    ],
)
def test_a_path_is_cleaned(given: str, cleaned: str) -> None:
    assert clean_path(given) == cleaned


@pytest.mark.parametrize(
    "path",
    [
        "",
        "hr",
        "//",
        "/hr//leave",
        "/hr/../x",
        "/./x",
        "/hr\\x",
        "/a\0",
        "/\u202ea",
        "/" + "a" * 500,
        "/a" * 21,
    ],
)
def test_a_path_that_cannot_be_meant_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        clean_path(path)


def test_a_folder_has_what_is_below_it_and_not_what_begins_alike() -> None:
    assert is_within("/hr/leave", "/hr")
    assert is_within("/hr", "/hr")
    assert is_within("/hr", "/")
    assert not is_within("/hrx", "/hr")
    assert not is_within("/hr", "/hr/leave")
