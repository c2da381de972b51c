"""Clients that other programs make from the OpenAPI document: made, compiled and used."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

import headrace
import headrace.server
from tests.server.conftest import client_of, make_app
from tests.support.npm import npm_packages

DATA = Path(__file__).with_name("data")
BIN = Path(sys.executable).parent
GENERATOR = BIN / "openapi-python-client"
TYPESCRIPT = {
    "compilerOptions": {
        "strict": True,
        "target": "es2022",
        "module": "nodenext",
        "types": ["node"],
        "skipLibCheck": True,
        "noEmitOnError": True,
    },
    "files": ["program.mts", "schema.ts"],
}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """The document of an App with tasks and workflows."""
    app = make_app("sqlite:///:memory:", tmp_path)
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(headrace.server.create(app).openapi()))
    return path


@pytest.fixture
def bare_document(tmp_path: Path) -> Path:
    """The document of an App without anything."""
    path = tmp_path / "bare.json"
    made = headrace.server.create(headrace.App("sqlite:///:memory:")).openapi()
    path.write_text(json.dumps(made))
    return path


async def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a program to its end, which must be a good one; return what it said."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | environment,
    )
    output = (await process.communicate())[0].decode("utf-8", "replace")
    assert process.returncode == 0, output[-4_000:]
    return output


async def generate(document: Path, name: str) -> None:
    folder = document.parent
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    options = ("--meta", "none", "--fail-on-warning")
    where = ("--path", document, "--output-path", folder / name)
    await run(GENERATOR, "generate", *where, *options, folder=folder, PATH=path)


async def test_a_python_client_is_made_and_used(
    document: Path, bare_document: Path, local_app: headrace.App
) -> None:
    folder = document.parent
    await generate(document, "made_client")
    await generate(bare_document, "bare_client")
    program = DATA / "generated_client.py"
    async with client_of(local_app) as client, headrace.JobOrchestrator(local_app):
        address = str(client.base_url).rstrip("/")
        told = await run(
            *(sys.executable, "-W", "error", program, address),
            folder=folder,
            PYTHONPATH=str(folder),
        )
    assert told == "used\n"


@pytest.mark.timeout(400)
async def test_a_typescript_client_is_made_compiled_and_used(
    document: Path, local_app: headrace.App
) -> None:
    modules, folder = npm_packages(), document.parent
    (folder / "node_modules").symlink_to(modules)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps(TYPESCRIPT))
    (folder / "program.mts").write_bytes((DATA / "generated_client.mts").read_bytes())
    programs = modules / ".bin"
    await run(programs / "openapi-typescript", document, "-o", "schema.ts", folder=folder)
    await run(programs / "tsc", "--project", folder, folder=folder)
    async with client_of(local_app) as client, headrace.JobOrchestrator(local_app):
        address = str(client.base_url).rstrip("/")
        told = await run("node", folder / "program.mjs", address, folder=folder)
    assert told == "used\n"


@pytest.mark.timeout(400)
async def test_spectral_finds_nothing(document: Path, bare_document: Path) -> None:
    modules = npm_packages()
    rules = ("--ruleset", DATA / "spectral.yaml", "--fail-severity", "hint")
    program = modules / ".bin" / "spectral"
    await run(program, "lint", *rules, document, bare_document, folder=document.parent)
