"""Speech on this machine: eSpeak NG, in processes of their own.

The state of the library is global, and what it crashes is its process alone. A process is used
again after a turn that it has spoken in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import msgspec

from headrace import InvalidSetting, ValidationError
from headrace_speech.providers.base import SpeechError, Voice, Voices
from headrace_speech.providers.child import Answered, Asked, read_frame, write_frame
from headrace_speech.sound.samples import Sound, from_bytes

MODULE = "headrace_speech.providers.child"
MISSING = (
    'provider "local" needs espeakng-loader, which is not installed here; install it: '
    'pip install "headrace-speech[espeak]"'
)
_NAMES = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR")


class Speaker:
    """One process that speaks. It ends when this one does, and when nobody has it any longer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        self.end = weakref.finalize(self, _end, self._process)

    def ask(self, asked: Asked) -> tuple[Answered, bytes]:
        """Ask it something and wait for the answer. Raises `SpeechError` if it ends before."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise SpeechError("the program that speaks has no pipes")
        try:
            write_frame(stdin, msgspec.json.encode(asked))  # type: ignore[arg-type]
            header = read_frame(stdout)  # type: ignore[arg-type]
            answered = msgspec.json.decode(header, type=Answered)
            content = stdout.read(answered.size)
        except (OSError, ValueError):
            raise SpeechError("the program that speaks ended") from None
        if len(content) != answered.size:
            raise SpeechError("the program that speaks ended")
        return answered, content


class LocalProvider:
    """Speaks by up to `processes` of them. Others wait for one of these."""

    name = "local"

    def __init__(self, *, processes: int = 2, seconds: float = 120.0) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="headrace-speech")
        self._lock = threading.Lock()
        self._idle: list[Speaker] = []
        self._voices: Voices | None = None

    async def voices(self) -> Voices:
        """Return the voices of the library. Raises `InvalidSetting` if it is not installed."""
        if self._voices is None:
            answered, _ = await self._ask(Asked())
            self._voices = Voices(
                provider=self.name,
                voices=msgspec.convert(answered.voices, tuple[Voice, ...]),
                variants=msgspec.convert(answered.variants, tuple[Voice, ...]),
            )
        return self._voices

    async def speak(self, text: str, voice: str) -> Sound:
        """Return a text as sound."""
        answered, content = await self._ask(Asked(text=text, voice=voice))
        return Sound(await asyncio.to_thread(from_bytes, content), answered.rate)

    def close(self) -> None:
        """End all processes."""
        self._threads.shutdown(cancel_futures=True)
        with self._lock:
            while self._idle:
                self._idle.pop().end()

    async def _ask(self, asked: Asked) -> tuple[Answered, bytes]:
        question = _Question(asked)
        try:
            async with asyncio.timeout(self._seconds):
                loop = asyncio.get_running_loop()
                answered, content = await loop.run_in_executor(
                    self._threads, self._in_thread, question
                )
        except TimeoutError:
            question.give_up()
            raise SpeechError(
                f"the program that speaks did not answer within {self._seconds:g} s"
            ) from None
        except asyncio.CancelledError:
            question.give_up()
            raise
        if answered.missing:
            raise InvalidSetting(MISSING)
        if answered.error is not None:
            raise ValidationError(f"the voice {asked.voice!r} cannot be used: {answered.error}")
        return answered, content

    def _in_thread(self, question: _Question) -> tuple[Answered, bytes]:
        with self._lock:
            waiting = self._idle.pop() if self._idle else None
        if waiting is not None:
            # It may have ended since, by itself or by others; then a new one is asked.
            with contextlib.suppress(SpeechError):
                return self._asked(waiting, question)
        return self._asked(Speaker(), question)

    def _asked(self, speaker: Speaker, question: _Question) -> tuple[Answered, bytes]:
        try:
            question.give_to(speaker)
            answer = speaker.ask(question.asked)
        except BaseException:
            speaker.end()
            raise
        with self._lock:
            self._idle.append(speaker)
        return answer


class _Question:
    """One question, until it is answered or nobody waits for the answer any longer."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._lock = threading.Lock()
        self._speaker: Speaker | None = None
        self._given_up = False

    def give_to(self, speaker: Speaker) -> None:
        """Say who answers it. Raises `SpeechError` if nobody waits."""
        with self._lock:
            if self._given_up:
                raise SpeechError("nobody waits for it any longer")
            self._speaker = speaker

    def give_up(self) -> None:
        """End the process that is busy with it; its thread is free then."""
        with self._lock:
            self._given_up = True
            if self._speaker is not None:
                self._speaker.end()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            # What was not written to it yet is lost, and that is said by an error.
            with contextlib.suppress(OSError, ValueError):
                pipe.close()


def _environment() -> dict[str, str]:
    """Nothing secret: the library needs none of it."""
    return {name: os.environ[name] for name in _NAMES if name in os.environ}
