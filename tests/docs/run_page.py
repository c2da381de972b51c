"""Runs the Python of one page from top to bottom: `python -m tests.docs.run_page PAGE`.

All blocks of a page share one namespace, as a reader would type them one after the other. A block
may `await`: those run on one event loop. A block with `<!-- file: … -->` is saved in the current
folder and imported.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import importlib.util
import inspect
import sys
import types
from pathlib import Path

from tests.docs.pages import Block, blocks


def main(page: Path) -> None:
    story = types.ModuleType("story")
    sys.modules["story"] = story
    # As in a reader's folder: what a page saves can be imported by its next block.
    sys.path.insert(0, str(Path.cwd()))
    with asyncio.Runner() as runner:
        for block in blocks(page):
            print(f"-- {block.place}", file=sys.stderr, flush=True)
            if block.language in ("python", "hidden") and wanted(block):
                run(block, story, runner)
            elif block.mark == "file" and not block.value.startswith("examples/"):
                save(block)


def wanted(block: Block) -> bool:
    if block.mark == "needs":
        return importlib.util.find_spec(block.value) is not None
    return block.mark is None


def run(block: Block, story: types.ModuleType, runner: asyncio.Runner) -> None:
    # Keep the line numbers of the page, so that a traceback points into it.
    text = "\n" * (block.line - 1) + block.text
    code = compile(text, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(types.FunctionType(code, vars(story))())
    else:
        exec(code, vars(story))


def save(block: Block) -> None:
    path = Path(block.value)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    if path.suffix == ".py":
        importlib.invalidate_caches()
        module = ".".join(path.with_suffix("").parts)
        sys.modules.pop(module, None)
        importlib.import_module(module)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
