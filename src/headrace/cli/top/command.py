"""`headrace top`: a live view of queues, running jobs, lanes and workers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import click

from headrace.cli.backend import Verbs
from headrace.cli.command import Command
from headrace.cli.formatting import parse_span
from headrace.cli.output import is_terminal, print_json, print_line
from headrace.cli.session import Session
from headrace.cli.top.layout import Line, screen
from headrace.cli.top.snapshot import Picture, Throughput, look, throughput
from headrace.errors import EngineUnavailable, InvalidInput

# Throughput is told over so many pictures: workers tell what they counted every two seconds.
PICTURES = 6
QUIT = (b"q", b"Q", b"\x03")


@click.command("top", cls=Command)
@click.option("--interval", metavar="SPAN", default="2s", help="Refresh this often: 1s, 500ms, …")
@click.option("--once", is_flag=True, help="Show it once, then stop.")
async def top(session: Session, *, interval: str, once: bool) -> None:
    """Show queues, jobs, lanes and workers, live.

    Also the throughput of all workers. Press q to quit.

    In a pipe, or with --once or --json, it is shown once, after one interval.

    With API_URL it asks that server.

    \b
    Examples:
      headrace top
      headrace top --json | jq .throughput
    """
    seconds = parse_span("--interval", interval)
    if not 0.1 <= seconds <= 3600:
        raise InvalidInput(f"--interval must be between 100ms and 1h, got {interval!r}")
    async with session.verbs() as verbs:
        if session.json or once or not is_terminal():
            await _once(session, verbs, seconds)
        else:
            await _live(session, verbs, seconds)


async def _once(session: Session, verbs: Verbs, seconds: float) -> None:
    before = await look(verbs)
    await asyncio.sleep(seconds)
    picture = await look(verbs)
    speed = throughput(before, picture)
    if session.json:
        print_json(picture.to_dict(speed))
        return
    size = shutil.get_terminal_size()
    columns = size.columns if is_terminal() else 10_000
    lines = screen(picture, speed, columns=columns, rows=10_000, where=_where(session), note="")
    for line in lines[:-1]:  # there is no key to press
        print_line(line.text)


async def _live(session: Session, verbs: Verbs, seconds: float) -> None:
    # Rich is imported only when it draws.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    pictures: deque[Picture] = deque(maxlen=PICTURES)
    note = ""
    with _keys() as told, Live(console=console, screen=True, auto_refresh=False) as live:
        while not told.is_set():
            try:
                pictures.append(await look(verbs))
                note = ""
            except EngineUnavailable as error:
                if not pictures:
                    raise
                note = f"{error}; trying again"
            speed: Throughput | None = throughput(pictures[0], pictures[-1])
            lines = screen(
                pictures[-1],
                speed,
                columns=console.width,
                rows=console.height,
                where=_where(session),
                note=note,
            )
            live.update(_drawn(lines), refresh=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), seconds)


def _drawn(lines: Sequence[Line]) -> Any:
    from rich.text import Text  # noqa: PLC0415

    whole = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        whole.append("\n" if number else "")
        whole.append(line.text, style=line.style or None)
    return whole


def _where(session: Session) -> str:
    return session.settings.api_url or "" if session.remote else session.shown_url


@contextlib.contextmanager
def _keys() -> Iterator[asyncio.Event]:
    """Set when somebody presses a key that quits. Without a keyboard, Ctrl-C does."""
    told = asyncio.Event()
    if not sys.stdin.isatty():
        yield told
        return
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        # As it comes: what Python keeps for later would not wake us. Arrows are not escape.
        typed = os.read(number, 1_024)
        if typed in (b"", b"\x1b") or any(key in typed for key in QUIT):
            told.set()

    tty.setcbreak(number)
    loop.add_reader(number, pressed)
    try:
        yield told
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
