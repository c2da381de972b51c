"""Finding the App that somebody named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.app import App
from headrace.cli.loading import load_app, reconfigure
from headrace.errors import InvalidInput

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules into a new current folder; they are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)

    def writer(name: str, content: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")

    yield writer
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_the_attribute_is_app_unless_it_is_named(write: Write) -> None:
    write("loading_one.py", "import headrace\napp = headrace.App()\nother = headrace.App()\n")
    assert isinstance(load_app("loading_one"), App)
    assert load_app("loading_one:other") is not load_app("loading_one:app")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("shopp.jobs", 'no module named "shopp".*did you mean "shop"'),
        ("shop.jbos", 'no module named "shop.jbos".*did you mean "shop.jobs"'),
        ("nowhere_at_all", "run it from the folder"),
        ("shop.jobs:ap", 'has no "ap"; use "shop.jobs:app"'),
        ("shop.jobs:number", 'is a int, not a headrace.App; use "shop.jobs:app"'),
        ("shop.empty", "has no headrace.App; make one"),
        ("shop.wrong", 'loading "shop.wrong" failed: ZeroDivisionError: .*wrong.py line 2'),
        ("shop.needs", "No module named 'nothing_like_it'.*needs.py line 1"),
        ("shop.syntax", "SyntaxError: .*syntax.py line 1"),
        ("shop.leaves", "failed: SystemExit: 3"),
        ("shop/jobs.py", 'write "shop.jobs" instead'),
        ("./shop.py:app", 'write "shop" instead'),
        ("", "is not the name of a module"),
        ("shop jobs", "is not the name of a module"),
    ],
)
def test_what_cannot_be_loaded_is_told_with_a_remedy(
    write: Write, reference: str, message: str
) -> None:
    write("shop/__init__.py", "")
    write("shop/jobs.py", "import headrace\napp = headrace.App()\nnumber = 3\n")
    write("shop/empty.py", "")
    write("shop/wrong.py", "\n1 / 0\n")
    write("shop/needs.py", "import nothing_like_it\n")
    write("shop/syntax.py", "def\n")
    write("shop/leaves.py", "raise SystemExit(3)\n")
    with pytest.raises(InvalidInput, match=message):
        load_app(reference)


def test_the_command_line_wins_over_the_code(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/code.db", lease_seconds=5.0)
    reconfigure(app, url=f"sqlite:///{tmp_path}/line.db", lease_seconds=None, grace_seconds=2.0)
    assert app.settings.url.endswith("line.db")
    assert (app.settings.lease_seconds, app.settings.grace_seconds) == (5.0, 2.0)
