"""How a child finds its task: in modules, scripts and packages; and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.errors import UnknownTask
from headrace.orchestrator.isolation import ChildDied, ProcessPool
from tests.orchestrator.isolation import handlers
from tests.orchestrator.isolation.conftest import RecordingContext, Run, a_claim

ROOT = Path(__file__).parents[3]

SCRIPT = """
from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

import headrace

app = headrace.App("sqlite://")

@dataclass
class Pair:
    left: int
    right: int

class Odd(headrace.NotRetryable):
    pass

@app.task(isolate="process")
def swap(pair: Pair) -> Pair:
    if pair.left == 0:
        raise Odd("nothing to swap")
    return Pair(pair.right, pair.left)

async def main():
    from headrace.orchestrator.isolation import ProcessPool
    from tests.orchestrator.isolation.conftest import RecordingContext, a_claim

    pool = ProcessPool(app_path=None, size=1)
    job = a_claim(swap, pair=Pair(1, 2))
    print((await pool.run(swap, job, RecordingContext(job))).decode())
    job = a_claim(swap, pair=Pair(0, 2))
    try:
        await pool.run(swap, job, RecordingContext(job))
    except Odd as error:
        print("Odd:", error)
    await pool.close()

"""
GUARD = 'if __name__ == "__main__":\n    asyncio.run(main())\n'
ANSWER = '{"left":2,"right":1}\nOdd: nothing to swap\n'


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["script.py", "script without ending"])
def test_a_script_that_is_run_by_its_path(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SCRIPT + GUARD)
    done = python(str(tmp_path / name), folder=ROOT)
    assert (done.stdout, done.returncode) == (ANSWER, 0), done.stderr


def test_a_module_that_is_run_with_m(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "sibling.py").write_text("")
    (tmp_path / "package" / "program.py").write_text(
        SCRIPT.replace("import sys", "from . import sibling") + GUARD
    )
    done = python("-m", "package.program", folder=tmp_path)
    assert (done.stdout, done.returncode) == (ANSWER, 0), done.stderr


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT + "asyncio.run(main())\n")
    done = python("script.py", folder=tmp_path)
    assert done.returncode == 1
    assert 'put what starts it under `if __name__ == "__main__":`' in done.stderr


def test_a_session_without_a_file_is_told_so(tmp_path: Path) -> None:
    done = python("-c", SCRIPT + "asyncio.run(main())\n", folder=tmp_path)
    assert done.returncode == 1
    assert "move the task from this session into a module" in done.stderr


async def test_a_module_that_cannot_be_imported_by_name_is_found_by_its_file(
    run: Run, tmp_path: Path
) -> None:
    import importlib.util

    (tmp_path / "loaded.py").write_text(
        "import headrace\n"
        'app = headrace.App("sqlite://")\n'
        '@app.task(isolate="process")\n'
        "def name() -> str:\n"
        "    return __name__\n"
    )
    spec = importlib.util.spec_from_file_location("loaded_elsewhere", tmp_path / "loaded.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["loaded_elsewhere"] = module
    try:
        spec.loader.exec_module(module)
        assert await run(module.name) == "loaded_elsewhere"
    finally:
        del sys.modules["loaded_elsewhere"]


async def test_a_task_inside_a_function_is_refused_with_the_remedy(run: Run) -> None:
    app = headrace.App("sqlite://")

    @app.task(isolate="process")
    def hidden() -> None: ...

    with pytest.raises(UnknownTask, match=r'"hidden".*no module holds it.*top level'):
        await run(hidden)


async def test_a_task_whose_function_is_of_another_module_is_found(run: Run) -> None:
    assert await run(borrowed, a=1) == 3


app = headrace.App("sqlite://")
borrowed: Any = app.task("borrowed", isolate="process")(handlers.add.function)


async def test_a_module_that_breaks_in_a_child_fails_the_job(
    pool: ProcessPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import os, headrace\n"
        'if os.environ.get("BREAK") == "raise":\n'
        '    raise ConnectionError("no licence server")\n'
        'if os.environ.get("BREAK") == "die":\n'
        "    os._exit(9)\n"
        'app = headrace.App("sqlite://")\n'
        '@app.task(isolate="process")\n'
        "def work() -> None: ...\n"
    )
    (tmp_path / "breaking.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import breaking  # type: ignore[import-not-found]

    job = a_claim(breaking.work)
    monkeypatch.setenv("BREAK", "raise")
    with pytest.raises(ConnectionError, match="no licence server"):
        await pool.run(breaking.work, job, RecordingContext(job))
    monkeypatch.setenv("BREAK", "die")
    with pytest.raises(ChildDied, match="exited with code 9 while it loaded breaking"):
        await pool.run(breaking.work, job, RecordingContext(job))
    monkeypatch.delenv("BREAK")
    assert await pool.run(breaking.work, job, RecordingContext(job)) == b"null"
