"""The code in the documentation runs as it stands."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.docs.pages import DOCS, ROOT, Block, blocks, clean_environment, name_of, pages

LIMIT = 90
FRAMEWORKS = ("fastapi", "flask", "django")
# Shown beside Headrace for those who come from them. They are no part of this project.
OTHERS = ("celery", "rq", "arq")


def runnable(page: Path) -> bool:
    return any(block.language in ("python", "hidden") for block in blocks(page))


@pytest.mark.parametrize("page", [page for page in pages() if runnable(page)], ids=name_of)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, servers: Servers) -> None:
    environment = clean_environment() | {
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": servers.url("postgres"),
        "REDIS_URL": servers.url("redis"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_page", str(page)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{name_of(page)}:\n{done.stdout}\n{done.stderr}"


PYTHON = [block for page in pages() for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_every_block_is_valid_python(block: Block) -> None:
    compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_only_a_framework_excuses_a_block_from_being_run() -> None:
    excused = [block for block in PYTHON if block.mark == "needs"]
    others = {block.page for block in excused if block.value in OTHERS}
    assert {block.value for block in excused} <= {*FRAMEWORKS, *OTHERS}
    assert others <= {DOCS / "migrating.md"}
    assert not [block.place for block in PYTHON if block.mark == "not run"]


EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.py") if path.stat().st_size)


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_compiles(path: Path) -> None:
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_is_shown_in_the_documentation(path: Path) -> None:
    assert any(
        block.value == name_of(path) and block.text == path.read_text(encoding="utf-8")
        for block in PYTHON
        if block.mark == "file"
    ), f"no page shows {name_of(path)} as it is"


def test_every_example_works_whose_framework_is_installed(tmp_path: Path) -> None:
    folders = [ROOT, ROOT / "examples", ROOT / "examples" / "django_shop"]
    for name in FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            continue
        done = subprocess.run(
            [sys.executable, "-m", "tests.docs.example_check", name],
            cwd=tmp_path,
            env=clean_environment() | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"{name}:\n{done.stdout}\n{done.stderr}"


def test_every_file_that_is_shown_exists() -> None:
    shown = {block.value for block in PYTHON if block.value.startswith("examples/")}
    assert shown <= {name_of(path) for path in EXAMPLES}
