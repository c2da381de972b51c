"""Speech of any server with the API of OpenAI: `POST {url}/audio/speech`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from time import time

import httpx

from headrace import AuthenticationError, RetryLater, ValidationError
from headrace_speech.providers.base import SpeechError, Voice, Voices
from headrace_speech.sound.samples import NoSound, Sound, read_wav

LONGEST_PAUSE_SECONDS = 3600.0
# What is asked of a server that is busy and does not say for how long.
USUAL_PAUSE_SECONDS = 5.0
# An hour of sound; a server that sends more than this for one turn is not what we think it is.
LARGEST_ANSWER = 512 * 1024 * 1024


class HostedProvider:
    """Speaks by a server. `url` ends before `/audio/speech`."""

    name = "openai"

    def __init__(
        self, url: str, *, key: str | None, model: str, voices: Sequence[str], seconds: float
    ) -> None:
        self._address = f"{url.rstrip('/')}/audio/speech"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._model = model
        self._voices = tuple(voices)
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<HostedProvider {self._model} at {self._address}>"

    async def voices(self) -> Voices:
        """Return the voices that the settings name."""
        named = tuple(Voice(voice=each, name=each.capitalize()) for each in self._voices)
        return Voices(provider=self.name, voices=named)

    async def speak(self, text: str, voice: str) -> Sound:
        """Return a text as sound."""
        body = {"model": self._model, "input": text, "voice": voice, "response_format": "wav"}
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx.AsyncClient(headers=self._headers, timeout=self._seconds) as client,
                client.stream("POST", self._address, json=body) as answer,
            ):
                content = await self._content(answer)
        except (httpx.TransportError, TimeoutError) as error:
            raise SpeechError(
                f"no answer from {self._address} within {self._seconds:g} s: "
                f"{type(error).__name__} {error}".rstrip()
            ) from error
        self._check(answer, content)
        try:
            return await asyncio.to_thread(read_wav, content)
        except NoSound as error:
            raise SpeechError(f"{self._address} answered no sound: {error}") from error

    async def _content(self, answer: httpx.Response) -> bytes:
        content = bytearray()
        async for piece in answer.aiter_bytes():
            content += piece
            if len(content) > LARGEST_ANSWER:
                raise SpeechError(f"{self._address} answered more than {LARGEST_ANSWER:,} bytes")
        return bytes(content)

    def _check(self, answer: httpx.Response, content: bytes) -> None:
        status = answer.status_code
        if status == httpx.codes.OK:
            return
        told = f"{self._address} answered {status}"
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise AuthenticationError(f"{told}: check HEADRACE_SPEECH_OPENAI_KEY")
        pause = _pause(answer.headers.get("Retry-After"))
        if status == httpx.codes.TOO_MANY_REQUESTS:
            raise RetryLater(told, delay=USUAL_PAUSE_SECONDS if pause is None else pause)
        if status == httpx.codes.SERVICE_UNAVAILABLE and pause is not None:
            raise RetryLater(told, delay=pause)
        if httpx.codes.is_client_error(status) and status != httpx.codes.REQUEST_TIMEOUT:
            raise ValidationError(f"{told}: {content[:200].decode('utf-8', 'replace')}")
        raise SpeechError(told)


def _pause(header: str | None) -> float | None:
    """Return the seconds of a `Retry-After`, given as a number or as a date."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except ValueError:
            return None
    if seconds != seconds:  # noqa: PLR0124 - "nan" is a number for float()
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS)
