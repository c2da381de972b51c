"""Personal data is found, named by its kind, and never half shown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_ingest.chunking import Chunk, split
from headrace_ingest.masking import Kind, Span, find, mask, mask_chunks
from headrace_ingest.masking.kinds import merge


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


VALUES = {
    "resident_number": ["900101-1234568", "900101 - 1234568", full_width("900101-1234568")],
    "phone": [
        "010-1234-5678",
        "01012345678",
        "+82 10-1234-5678",
        "+82-(0)10-1234-5678",
        "02-312-4567",
        "010.1234 5678",
        "+1 415 555 2671",
        "(212) 555-0147",
        "+49 30 901820",
        "공일공 일이삼사 오육칠팔",
        "010\u200b-1234-5678",
        full_width("010ㅡ1234ㅡ5678"),
    ],
    "card": ["4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005"],
    "email": ["hong@example.co.kr", "h.o+x@a-b.example", "hong (at) example.com"],
    "driver_licence": ["11-12-123456-12", "서울 12-123456-12"],
    "us_ssn": ["123-45-6789"],
    "api_key": [
        "sk-abcdefghijklmnopqrstuvwx1234",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
    ],
}
IN_CONTEXT = [
    ("account", "급여는 신한은행 110-123-456789 로", "110-123-456789"),
    ("account", "IBAN DE89 3704 0044 0532 0130 00 for rent", "DE89 3704 0044 0532 0130 00"),
    ("account", "my bank account number is 000123456789 now", "000123456789"),
    ("passport", "여권번호 M12345678 입니다", "M12345678"),
    ("passport", "his passport no. 123456789 expired", "123456789"),
    ("driver_licence", "driver's license D1234567 was lost", "D1234567"),
    ("us_ssn", "SSN: 123456789", "123456789"),
    ("api_key", "api_key = 9f8e7d6c5b4a39281706", "9f8e7d6c5b4a39281706"),
    ("person", "담당자 홍길동 과장에게", "홍길동"),
    ("person", "이석준 2차관 주재로", "이석준"),
    ("person", "wrote Mr. Brown yesterday", "Brown"),
]
HARMLESS = [
    "회의는 2024-01-15 14:30에 시작해 2024.01.16까지 합니다.",
    "사업자등록번호 123-45-67890, 우편번호 06236, 모델명 SM-G998N",
    "주문번호 20240115-0001234 금액 1,234,567원",
    "4111 1111 1111 1112 is no card, 900141-1234568 has no date",
    "version 1.2.3.4 and 127.0.0.1",
    "The annual report of 2023 says 12 345 678 items in 3-2-1 order.",
    "서울특별시 강남구 테헤란로 123, 삼성전자와 국민은행",
]


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in VALUES.items() for value in values]
)
@pytest.mark.parametrize("text", ["{}", "연락은 {} 로 주세요.", "see {}, please", "({})\n"])
def test_a_value_is_masked_whole_wherever_it_stands(kind: str, value: str, text: str) -> None:
    masked = mask(text.format(value))
    assert masked.text == text.format(Kind(kind).mask)
    assert masked.found == {kind: 1}


@pytest.mark.parametrize(("kind", "text", "value"), IN_CONTEXT)
def test_a_value_is_found_by_what_stands_beside_it(kind: str, text: str, value: str) -> None:
    assert mask(text).text == text.replace(value, Kind(kind).mask)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_is_left(text: str) -> None:
    assert mask(text).text == text


def test_a_private_key_is_masked_also_if_it_is_cut_off() -> None:
    begin = "-----BEGIN RSA " + "PRIVATE KEY-----"
    assert mask(f"a\n{begin}\nMIIabc\n-----END RSA PRIVATE KEY-----\nb").text == "a\n[API_KEY]\nb"
    assert mask(f"a\n{begin}\nMIIabc").text == "a\n[API_KEY]"


PIECES = [value for values in VALUES.values() for value in values]
PIECES += [text for _, text, _ in IN_CONTEXT] + HARMLESS
PIECES += ["[PHONE]", "[PERSON]", "김", "씨", " ", "-", "1", "\n", "A", "@", ".", "님"]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=6))
def test_masking_twice_changes_nothing(pieces: list[str]) -> None:
    once = mask("".join(pieces)).text
    again = mask(once)
    assert again.text == once
    assert not again.found


def test_overlaps_become_one_mask() -> None:
    spans = [Span(0, 5, Kind.PERSON), Span(3, 9, Kind.PHONE), Span(9, 10, Kind.CARD)]
    assert merge(spans) == [Span(0, 9, Kind.PHONE), Span(9, 10, Kind.CARD)]
    assert mask("hong@example.com:010-1234-5678").text == "[EMAIL]:[PHONE]"


@pytest.mark.parametrize("border", range(1, 13))
def test_what_a_border_cuts_survives_in_no_chunk(border: int) -> None:
    text = "전화 010-1234-5678 끝"
    at = text.index("010") + border
    chunks = [Chunk(0, 0, at, text[:at]), Chunk(1, at, len(text), text[at:])]
    masked = mask_chunks(text, chunks)
    assert [chunk.text for chunk in masked.chunks] == ["전화 [PHONE]", "[PHONE] 끝"]
    assert masked.found == {"phone": 1}
    assert [chunk.begin for chunk in masked.chunks] == [0, at]


def test_no_digit_of_a_number_survives_in_the_chunks_of_a_long_text() -> None:
    text = " ".join("가나다 " * (n % 7) + f"010-{n + 1000}-5678" for n in range(400))
    chunks = split(text)
    masked = mask_chunks(text, chunks)
    assert len(masked.chunks) == len(chunks) > 10
    assert not any(char.isdigit() for chunk in masked.chunks for char in chunk.text)
    assert masked.found["phone"] == 400


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a.",
        "1",
        "1-",
        "a@",
        "+1 ",
        "010-",
        "token ",
        "Aa ",
        "-----BEGIN PRIVATE KEY-----",
        "계좌 ",
    ],
)
def test_hostile_text_does_not_take_the_square_of_its_length(unit: str) -> None:
    find("가")  # loads the dictionary
    text = unit * (50_000 // len(unit))
    begun = time.process_time()
    mask(text)
    assert time.process_time() - begun < 6


def test_the_mask_of_a_kind_is_its_name() -> None:
    assert {kind.mask for kind in Kind} >= {"[PHONE]", "[PERSON]", "[RESIDENT_NUMBER]"}


@pytest.mark.parametrize("text", ["근로계약서", "표준근로계약서\n", "재직증명서", "연차신청서"])
def test_what_a_paper_is_called_is_no_person(text: str) -> None:
    assert find(text) == []
    assert [span.kind for span in find(f"{text} 성명: 박서연")] == [Kind.PERSON]
