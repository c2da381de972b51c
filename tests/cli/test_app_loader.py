"""Finding the App that somebody named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.app import App
from headrace.cli.app_loader import load_app, reconfigure
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
        ("milll.jobs", 'no module named "milll".*did you mean "mill"'),
        ("mill.jbos", 'no module named "mill.jbos".*did you mean "mill.jobs"'),
        ("nowhere_at_all", "run it from the folder"),
        ("mill.jobs:ap", 'has no "ap"; use "mill.jobs:app"'),
        ("mill.jobs:number", 'is a int, not a headrace.App; use "mill.jobs:app"'),
        ("mill.empty", "has no headrace.App; make one"),
        ("mill.wrong", 'loading "mill.wrong" failed: ZeroDivisionError: .*wrong.py line 2'),
        ("mill.needs", "No module named 'nothing_like_it'.*needs.py line 1"),
        (
            "mill.decorated",
            r'unknown task option "qeue"; did you mean "queue".*decorated.py line 4',
        ),
        ("mill.lanes", r"lane 'user:\{id\}' reads .*lanes.py line 4"),
        ("mill.scheduled", r"""cron expression "\* \*" is not valid.*scheduled.py line 4"""),
        ("mill.syntax", "SyntaxError: .*syntax.py line 1"),
        ("mill.leaves", "failed: SystemExit: 3"),
        ("mill/jobs.py", 'write "mill.jobs" instead'),
        ("./mill.py:app", 'write "mill" instead'),
        ("", "is not the name of a module"),
        ("mill jobs", "is not the name of a module"),
    ],
)
def test_what_cannot_be_loaded_is_told_with_a_remedy(
    write: Write, reference: str, message: str
) -> None:
    write("mill/__init__.py", "")
    write("mill/jobs.py", "import headrace\napp = headrace.App()\nnumber = 3\n")
    write("mill/empty.py", "")
    write("mill/wrong.py", "\n1 / 0\n")
    write("mill/needs.py", "import nothing_like_it\n")
    head = "import headrace\napp = headrace.App()\n\n"
    write("mill/decorated.py", f'{head}@app.task(qeue="mail")\ndef send() -> None: ...\n')
    write("mill/lanes.py", f'{head}@app.task(lane="user:{{id}}")\ndef send() -> None: ...\n')
    write(
        "mill/scheduled.py",
        f'{head}@app.schedule("* *")\n@app.task\ndef send() -> None: ...\n',
    )
    write("mill/syntax.py", "def\n")
    write("mill/leaves.py", "raise SystemExit(3)\n")
    with pytest.raises(InvalidInput, match=message):
        load_app(reference)


def test_the_command_line_wins_over_the_code(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/code.db", lease_seconds=5.0)
    reconfigure(app, url=f"sqlite:///{tmp_path}/line.db", lease_seconds=None, grace_seconds=2.0)
    assert app.settings.url.endswith("line.db")
    assert (app.settings.lease_seconds, app.settings.grace_seconds) == (5.0, 2.0)
