"""The door to a browser: Playwright over CDP, whichever browser it is.

The browser is a process tree of its own below the handler's process. Nothing here has to end it
when the job is cancelled, out of time or killed: the handler runs in an isolated child
(`isolate="process"`), whose supervisor kills all that was started in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lightpanda.client import find_binary
from playwright.async_api import Browser, async_playwright
from playwright.async_api import Error as PlaywrightError

from headrace_scanner.errors import BrowserFailed

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
START_SECONDS = 30.0
END_SECONDS = 5.0
PROFILE = "headrace-scanner-"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - its size is asked for, nothing is put there
# A container has 64 MiB of it unless it is given more, which is too little for Chromium.
ENOUGH_SHARED_MEMORY = 512 * 2**20
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
)


@asynccontextmanager
async def opened(browser: str, *, private: bool) -> AsyncIterator[Browser]:
    """Start a browser, or connect to one that runs, and end it afterwards. `private`: it may ask
    private addresses. Raises `BrowserFailed` if it does not start.
    """
    async with async_playwright() as driver, _endpoint(browser, private=private) as endpoint:
        try:
            connected = await driver.chromium.connect_over_cdp(
                endpoint, timeout=START_SECONDS * 1000
            )
        except PlaywrightError as error:
            reason = str(error).partition("\n")[0]
            raise BrowserFailed(f"no connection to the browser {browser!r}: {reason}") from None
        try:
            yield connected
        finally:
            with contextlib.suppress(PlaywrightError, TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await connected.close()


@asynccontextmanager
async def _endpoint(browser: str, *, private: bool) -> AsyncIterator[str]:
    if browser.startswith(("http://", "https://", "ws://", "wss://")):
        yield browser
    elif browser == "lightpanda":
        async with _lightpanda(private=private) as endpoint:
            yield endpoint
    else:
        async with _chromium(find_chromium(browser)) as endpoint:
            yield endpoint


def find_chromium(browser: str) -> str:
    """Return the path of a Chromium: the given one, or one that is found here."""
    if browser != "chromium":
        if not os.access(browser, os.X_OK):
            raise BrowserFailed(
                f"HEADRACE_SCANNER_BROWSER is {browser!r}, which is no program; use lightpanda, "
                "chromium, a path, or the address of a browser"
            )
        return browser
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise BrowserFailed(
            "there is no Chromium here; install one, name its path in HEADRACE_SCANNER_BROWSER, "
            "or use lightpanda"
        )
    return found


@asynccontextmanager
async def _lightpanda(*, private: bool) -> AsyncIterator[str]:
    arguments = ["serve", "--host", "127.0.0.1", "--port", "0", "--log-level", "info"]
    if not private:
        arguments.append("--block-private-networks")
    environment = {**os.environ, "LIGHTPANDA_DISABLE_TELEMETRY": "true"}

    def address(line: str) -> str | None:
        _, found, rest = line.partition("address=")
        return f"http://{rest.split()[0]}" if found and "server running" in line else None

    async with _running([str(find_binary(None)), *arguments], environment, address) as endpoint:
        yield endpoint


@asynccontextmanager
async def _chromium(program: str) -> AsyncIterator[str]:
    remove_left_profiles()

    def address(line: str) -> str | None:
        _, found, endpoint = line.partition("DevTools listening on ")
        return endpoint.strip() if found else None

    with tempfile.TemporaryDirectory(
        prefix=f"{PROFILE}{os.getpid()}-", ignore_cleanup_errors=True
    ) as profile:
        arguments = [*FLAGS, f"--user-data-dir={profile}", "about:blank"]
        if os.geteuid() == 0:
            arguments.insert(0, "--no-sandbox")  # Chromium does not start as root with it
        if _shared_memory() < ENOUGH_SHARED_MEMORY:
            arguments.insert(0, "--disable-dev-shm-usage")
        async with _running([program, *arguments], dict(os.environ), address) as endpoint:
            yield endpoint


def remove_left_profiles() -> None:
    """Remove the profiles of browsers whose process was killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{PROFILE}*"):
        owner = place.name.removeprefix(PROFILE).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists() and Path("/proc").exists():
            shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def _running(
    command: list[str], environment: dict[str, str], address: Callable[[str], str | None]
) -> AsyncIterator[str]:
    """Start a browser; yields where it listens, which `address` finds in what it says."""
    program = command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise BrowserFailed(f"{program} cannot be started: {error}") from None
    draining: asyncio.Task[None] | None = None
    try:
        if process.stderr is None:
            raise BrowserFailed(f"{program} has no output")
        try:
            async with asyncio.timeout(START_SECONDS):
                endpoint = await _find(process.stderr, address)
        except TimeoutError:
            raise BrowserFailed(f"{program} did not start within {START_SECONDS:g} s") from None
        if endpoint is None:
            raise BrowserFailed(f"{program} ended before it listened")
        # What it says from now on has to be read, or it would wait for us.
        draining = asyncio.create_task(_drain(process.stderr))
        yield endpoint
    finally:
        await _end(process)
        if draining is not None:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)


async def _find(said: asyncio.StreamReader, address: Callable[[str], str | None]) -> str | None:
    while line := await said.readline():
        if (endpoint := address(line.decode(errors="replace"))) is not None:
            return endpoint
    return None


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


def _shared_memory() -> int:
    try:
        return shutil.disk_usage(SHARED_MEMORY).free
    except OSError:
        return 0
