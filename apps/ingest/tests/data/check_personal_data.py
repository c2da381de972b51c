"""Check `personal_data.jsonl`: offsets, counts of each kind, check digits.

    python check_personal_data.py

Every sentence was written for this set and every value in it is invented. How it is marked: a
person is the name alone, without title and particle; an account is the number without the bank;
every phone line counts, an office's too; a number that is hidden already (850312-1******) or
cannot exist is no personal data, nor is a company's registration number or a place's name.
Keys are written with JSON escapes in the file, so that scanners for leaked secrets do not take
them for real ones: read it as JSON.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

SENTENCES = Path(__file__).with_name("personal_data.jsonl")
KINDS = (
    "resident_number",
    "phone",
    "card",
    "account",
    "email",
    "passport",
    "driver_licence",
    "api_key",
    "us_ssn",
    "person",
)
LANGUAGES = ("ko", "en", "mixed")
LEAST_SENTENCES, LEAST_WITHOUT, LEAST_SPANS, LEAST_WITH_PERSON = 240, 70, 18, 55
RESIDENT_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
# The seventh digit says the century of birth, and from 5 to 8 that the person is a foreigner.
CENTURIES = {"1": 1900, "2": 1900, "3": 2000, "4": 2000, "5": 1900, "6": 1900, "7": 2000, "8": 2000}


def digits(text: str) -> str:
    """Return the digits of a text, full-width ones as plain ones."""
    return re.sub(r"[^0-9]", "", unicodedata.normalize("NFKC", text))


def is_resident_number(value: str) -> bool:
    """Return whether a number has a date that exists and the right check digit."""
    number = digits(value)
    if len(number) != 13 or number[6] not in CENTURIES:
        return False
    try:
        year = CENTURIES[number[6]] + int(number[:2])
        datetime.date(year, int(number[2:4]), int(number[4:6]))
    except ValueError:
        return False
    total = sum(
        int(digit) * weight for digit, weight in zip(number, RESIDENT_WEIGHTS, strict=False)
    )
    base = 13 if number[6] in "5678" else 11
    return (base - total % 11) % 10 == int(number[12])


def is_card(value: str) -> bool:
    """Return whether a number is as long as a card's and passes the Luhn check."""
    number = digits(value)
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number))]
    return 13 <= len(number) <= 19 and sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_us_ssn(value: str) -> bool:
    """Return whether a number may have been given out: no empty group, no area kept free."""
    number = digits(value)
    area, group, serial = number[:3], number[3:5], number[5:]
    free = area in {"000", "666"} or area.startswith("9")
    return len(number) == 9 and not free and group != "00" and serial != "0000"


def is_account(value: str) -> bool:
    """Return whether an account is long enough and, as an IBAN, has the right check digits."""
    plain = re.sub(r"[\s-]", "", unicodedata.normalize("NFKC", value))
    if plain[:2].isalpha():
        return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1
    return plain.isdigit() and 10 <= len(plain) <= 16


CHECKS = {
    "resident_number": is_resident_number,
    "card": is_card,
    "us_ssn": is_us_ssn,
    "account": is_account,
}


def faults_of(row: dict[str, Any]) -> list[str]:
    """Return what is wrong with one sentence, in words."""
    faults = [] if row["lang"] in LANGUAGES else [f"lang {row['lang']}"]
    end = 0
    for span in row["spans"]:
        kind, value = span["kind"], span["value"]
        if kind not in KINDS:
            faults.append(f"kind {kind}")
        if row["text"][span["start"] : span["end"]] != value or value != value.strip():
            faults.append(f"{value!r} does not stand at {span['start']}")
        if span["start"] < end:
            faults.append(f"{value!r} overlaps the span before it")
        if kind in CHECKS and not CHECKS[kind](value):
            faults.append(f"{value!r} is no valid {kind}")
        end = span["end"]
    if not row["spans"]:
        runs = re.findall(r"\d[\d -]*\d", row["text"])
        faults += [f"{run!r} is valid" for run in runs if is_card(run) or is_resident_number(run)]
    return faults


def too_few(rows: list[dict[str, Any]], kinds: Counter[str]) -> list[str]:
    """Return which counts are below what the set promises."""
    without = sum(not row["spans"] for row in rows)
    with_person = sum(any(span["kind"] == "person" for span in row["spans"]) for row in rows)
    counts = [
        ("sentences", len(rows), LEAST_SENTENCES),
        ("without personal data", without, LEAST_WITHOUT),
        ("with a person", with_person, LEAST_WITH_PERSON),
        *((kind, kinds[kind], LEAST_SPANS) for kind in KINDS),
    ]
    for name, count, _ in counts:
        print(f"{count:4} {name}")
    return [f"{name}: {count}, not {least}" for name, count, least in counts if count < least]


def main() -> int:
    """Print counts and faults; returns 1 if there is a fault, else 0."""
    rows = [json.loads(line) for line in SENTENCES.read_text("utf-8").splitlines()]
    faults = [f"{row['id']}: {fault}" for row in rows for fault in faults_of(row)]
    for field in ("id", "text"):
        twice = [value for value, count in Counter(row[field] for row in rows).items() if count > 1]
        faults += [f"{field} twice: {value}" for value in twice]
    faults += too_few(rows, Counter(span["kind"] for row in rows for span in row["spans"]))
    for language, count in Counter(row["lang"] for row in rows).items():
        print(f"{count:4} {language}")
    print(*(faults or ["no faults"]), sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
