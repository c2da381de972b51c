"""The tutorial works, command by command, from its first line to its last.

Beside what `pages` tells, a console block may be marked `in: NAME` (it is typed into another
terminal, where its last command stays) or `kill: NAME` (it ends that terminal's command by force);
`stop: NAME` alone is Ctrl-C in that terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Servers
from tests.docs.pages import DOCS, Block, blocks, clean_environment

LIMIT = 40.0
# Looking again until it shows what the page shows does no harm.
LOOKS = ("headrace jobs list", "headrace jobs show", "headrace running", "headrace lanes")
POSTGRES = "postgresql://postgres:secret@127.0.0.1:5432/postgres"


def pattern(shown: str) -> re.Pattern[str]:
    """What a line of output has to look like, where ids, numbers and names may differ."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "\0", shown.strip())
    text = re.sub(r"laptop[-\w]*", "\1", text)
    text = re.sub(r"\d+(\.\d+)*", "\2", text)
    text = re.escape(text)
    text = re.sub(r"(\\ )+", r"\\s+", text).replace("…", ".*")
    for mark, found in (("\0", "[0-9a-f-]{36}"), ("\1", r"\S+"), ("\2", r"[\d.,]+")):
        text = text.replace(mark, found)
    return re.compile(r"\s*" + text + r"\s*")


def missing(shown: list[str], output: str) -> list[str]:
    """The lines that a page shows and the output does not have."""
    lines = output.splitlines()
    return [each for each in shown if not any(pattern(each).fullmatch(line) for line in lines)]


def steps(block: Block) -> list[tuple[str, list[str]]]:
    """Commands, each with the output that is shown for it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


class Reader:
    """Somebody who does what the tutorial says, in several terminals."""

    def __init__(self, folder: Path, urls: dict[str, str]) -> None:
        self.folder = folder
        self.urls = urls
        self.environment = clean_environment()
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def do(self, block: Block) -> None:
        match block.mark:
            case "file":
                (self.folder / block.value).write_text(block.text, encoding="utf-8")
            case "stop":
                self.end(block.value, signal.SIGINT)
            case "kill":
                self.end(block.value, signal.SIGKILL)
            case "in":
                self.start(block)
            case None if block.language == "console":
                for command, shown in steps(block):
                    self.type(command, shown, block.place)

    def type(self, command: str, shown: list[str], place: str) -> None:
        end = time.monotonic() + LIMIT
        while True:
            output = self.run(command)
            left = missing(shown, output)
            if not left:
                return
            if time.monotonic() > end or not command.startswith(LOOKS):
                pytest.fail(f"{place}: {command}\nshould show {left}\nbut shows\n{output}")

    def run(self, command: str) -> str:
        """Type a command; variables that it sets stay."""
        for written, real in self.urls.items():
            command = command.replace(written, real)
        marker = "-- variables --"
        done = subprocess.run(
            ["bash", "-c", f"{command}\necho; echo '{marker}'; printf '%s\\n' \"JOB=$JOB\""],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        output, _, variables = done.stdout.partition(marker)
        for line in variables.split():
            name, _, value = line.partition("=")
            self.environment[name] = value
        words = shlex.split(command)
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self.environment[name] = value
        return output

    def start(self, block: Block) -> None:
        *exports, (command, shown) = [step for step in steps(block) if not step[0].startswith(". ")]
        for export, _ in exports:
            self.run(export)
        log = self.folder / f"{block.value}.log"
        with log.open("wb") as file:
            self.running[block.value] = subprocess.Popen(
                shlex.split(command), cwd=self.folder, env=self.environment, stderr=file
            )
        end = time.monotonic() + LIMIT
        while left := missing(shown, log.read_text(encoding="utf-8")):
            if time.monotonic() > end:
                pytest.fail(f"{block.place}: {left} does not show in\n{log.read_text()}")
            time.sleep(0.05)

    def end(self, name: str, how: signal.Signals) -> None:
        process = self.running.pop(name)
        process.send_signal(how)
        code = process.wait(LIMIT)
        assert code == (0 if how is signal.SIGINT else -how)

    def leave(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture
def reader(tmp_path: Path, servers: Servers) -> Iterator[Reader]:
    somebody = Reader(tmp_path, {POSTGRES: f"{servers.url('postgres')}?schema=tutorial"})
    yield somebody
    somebody.leave()


@pytest.mark.timeout(300)
def test_the_tutorial_works_as_it_is_written(reader: Reader) -> None:
    for block in blocks(DOCS / "tutorial.md"):
        reader.do(block)
