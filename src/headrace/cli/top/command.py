"""`headrace top`: a live view of queues, running jobs, lanes and workers."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import sys
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from headrace.cli.command import Command, flag, option
from headrace.cli.formatting import parse_span
from headrace.cli.output import is_terminal, print_json, print_line
from headrace.cli.session import CliSession
from headrace.cli.top.snapshot import Picture, take_picture, throughput
from headrace.errors import EngineUnavailable, InvalidInput

if TYPE_CHECKING:
    from headrace.cli.backend import Backend

# Throughput is measured over this many pictures: workers publish their counts every two seconds.
PICTURES = 6
QUIT = (b"q", b"Q", b"\x03")


@click.command("top", cls=Command)
@option("--interval", "SPAN", "Refresh this often: 1s, 500ms, …", default="2s")
@flag("--once", "Show it once, then stop.")
async def top(session: CliSession, *, interval: str, once: bool) -> None:
    """Show queues, jobs, lanes and workers, live.

    Also the throughput of all workers. Press q to quit.

    In a pipe, or with --once or --json, it is shown once, after one interval.

    With API_URL it asks that server.

      headrace top
      headrace top --json | jq .throughput
    """
    seconds = parse_span("--interval", interval)
    if not 0.1 <= seconds <= 3600:
        raise InvalidInput(f"--interval must be between 100ms and 1h, got {interval!r}")
    async with session.backend() as backend:
        if session.json or once or not is_terminal():
            await _once(session, backend, seconds)
        else:
            await _live(session, backend, seconds)


async def _once(session: CliSession, backend: Backend, seconds: float) -> None:
    before = await take_picture(backend)
    await asyncio.sleep(seconds)
    picture = await take_picture(backend)
    speed = throughput(before, picture)
    if session.json:
        print_json(picture.to_dict(speed))
        return
    from rich.console import Console  # noqa: PLC0415 - only when it draws

    from headrace.cli.top.layout import screen  # noqa: PLC0415

    # In a pipe nothing is cut: `grep` and `awk` want whole values.
    columns = shutil.get_terminal_size().columns if is_terminal() else 10_000
    console = Console(file=io.StringIO(), width=columns, height=10_000, color_system=None)
    console.print(screen(picture, speed, console=console, where=_where(session), note=""))
    for line in console.file.getvalue().splitlines():  # type: ignore[attr-defined]
        print_line(line.rstrip())


async def _live(session: CliSession, backend: Backend, seconds: float) -> None:
    from rich.console import Console  # noqa: PLC0415 - only when it draws
    from rich.layout import Layout  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from headrace.cli.top.layout import screen  # noqa: PLC0415

    console = Console(highlight=False)
    body = Layout(name="body")
    page = Layout()
    page.split_column(body, Layout(Text("q quits", style="dim"), size=1))
    pictures: deque[Picture] = deque(maxlen=PICTURES)
    note = ""
    with _quit_key() as quit, Live(page, console=console, screen=True, auto_refresh=False) as live:
        while not quit.is_set():
            try:
                pictures.append(await take_picture(backend))
                note = ""
            except EngineUnavailable as error:
                if not pictures:
                    raise
                note = f"{error}; trying again"
            speed = throughput(pictures[0], pictures[-1])
            where = _where(session)
            body.update(screen(pictures[-1], speed, console=console, where=where, note=note))
            live.refresh()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(quit.wait(), seconds)


def _where(session: CliSession) -> str:
    return session.settings.api_url or "" if session.remote else session.shown_url


@contextlib.contextmanager
def _quit_key() -> Iterator[asyncio.Event]:
    """Yield an event that is set when q is pressed. Without a keyboard, Ctrl-C quits."""
    pressed_quit = asyncio.Event()
    if not sys.stdin.isatty():
        yield pressed_quit
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
            pressed_quit.set()

    tty.setcbreak(number)
    loop.add_reader(number, pressed)
    try:
        yield pressed_quit
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
