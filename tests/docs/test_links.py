"""Every link inside the documentation leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, links, name_of, pages, prose


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for _, line in prose(page):
        if heading := re.match(r"#+ (.+)", line):
            plain = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(plain.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_relative_link_resolves(page: Path) -> None:
    broken = []
    for number, target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{name_of(page)}:{number} {target}")
    assert broken == []


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [DOCS / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [target.partition("#")[0] for _, target in links(page)]
        ahead += [
            (page.parent / target).resolve()
            for target in targets
            if target.endswith(".md") and "://" not in target
        ]
    missing = [
        name_of(page)
        for page in pages()
        if page.is_relative_to(DOCS) and DOCS / "decisions" not in page.parents
        if page not in reached
    ]
    assert missing == []


def test_every_test_and_file_that_is_named_exists() -> None:
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
    }
    wrong = []
    for page in pages():
        for number, line in prose(page):
            named = re.findall(r"`(test_\w+)`", line)
            files = re.findall(r"`((?:tests|src|docs|bench|examples)/[\w./-]+)`", line)
            missing = [name for name in named if name not in tests]
            missing += [file for file in files if not (ROOT / file).exists()]
            wrong += [f"{name_of(page)}:{number} {each}" for each in missing]
    assert wrong == []
