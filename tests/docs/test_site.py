"""The pages make a site that can be searched, whose links all lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT

# What a browser loads by itself, as opposed to links that a reader may follow.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?([^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|icon|preload))[^>]*\bhref=["']?([^"'\s>]+)"""
)

_IN_STYLES = re.compile(r"""url\(["']?((?:https?:)?//[^)"']+)""")


def build(root: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of the folder `root` into `target`, as `make docs` does."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT, target)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_broken_links_and_anchors_fail_the_build(tmp_path: Path) -> None:
    # With the settings of the site: two pages are as strict as all of them, and built sooner.
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\nnav:\n" in settings
    (tmp_path / "mkdocs.yml").write_text(settings.partition("\nnav:\n")[0] + "\n")
    (tmp_path / "docs").mkdir()
    for name in ("site.css", "site_hooks.py"):
        shutil.copy(DOCS / name, tmp_path / "docs")
    (tmp_path / "docs" / "faq.md").write_text("# Questions\n\n[Names](README.md#names)\n")
    page = "# Start\n\n## Names\n\n[Questions](faq.md#questions){}\n"
    (tmp_path / "docs" / "README.md").write_text(page.format(""))
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = ", [no page](nowhere.md), [no heading](faq.md#nowhere)"
    (tmp_path / "docs" / "README.md").write_text(page.format(broken))
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "not found among documentation files" in done.stderr
    assert "does not contain an anchor '#nowhere'" in done.stderr
    # Nothing else is wrong with it.
    assert done.stderr.count("WARNING") == 2, done.stderr


def test_every_page_is_part_of_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html")
        if page.name == "README.md":
            name = name.with_name("index.html")
        assert (site / name).exists(), f"{page} was left out"


@pytest.mark.parametrize(
    "word", ["workflow", "cron", "kafka", "api key", "celery", "lease", "dead letter"]
)
def test_the_search_finds_the_words_of_the_trade_in_titles(site: Path, word: str) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert any(word in entry["title"].lower() for entry in index["docs"])


def test_code_that_only_tests_run_is_not_part_of_the_site(site: Path) -> None:
    hidden = [
        page.name
        for page in site.rglob("*.html")
        if re.search(r"<!-- (run|file|not run|needs):?", page.read_text(encoding="utf-8"))
    ]
    assert hidden == []


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    foreign = [
        f"{page.relative_to(site)}: {address}"
        for page in site.rglob("*.html")
        for found in _LOADED.findall(page.read_text(encoding="utf-8"))
        for address in found
        if re.match(r"(https?:)?//", address)
    ]
    foreign += [
        f"{sheet.relative_to(site)}: {address}"
        for sheet in site.rglob("*.css")
        for address in re.findall(
            r"""url\(["']?((?:https?:)?//[^)"']+)""", sheet.read_text("utf-8")
        )
    ]
    assert foreign == []


def test_files_that_are_no_pages_are_left_out(site: Path) -> None:
    assert not list(site.rglob("*.py"))
    assert not list(site.glob("performance.json"))
