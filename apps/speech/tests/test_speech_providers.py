"""Who speaks: voices of this machine in processes of their own, and a service of others."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import psutil
import pytest
from speech_support.speech_server import SpeechServer, a_speech_server, tone
from tests.support.processes import until

from headrace import AuthenticationError, HeadraceError, RetryLater, ValidationError
from headrace_speech.providers.base import SpeechError
from headrace_speech.providers.hosted import HostedProvider
from headrace_speech.providers.local import LocalProvider
from headrace_speech.sound.mixing import is_silent


@pytest.fixture
def local() -> Iterator[LocalProvider]:
    made = LocalProvider(processes=2, seconds=30)
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[SpeechServer]:
    with a_speech_server() as made:
        yield made


def hosted(url: str, seconds: float = 30) -> HostedProvider:
    return HostedProvider(url, key="k", model="m", voices=["alloy"], seconds=seconds)


async def test_this_machine_speaks_many_languages(local: LocalProvider) -> None:
    voices = await local.voices()
    local._voices = None
    assert await local.voices() == voices, "the same process, asked again"
    assert len({each.voice for each in voices.voices}) == len(voices.voices) > 100
    for voice in ("ko", "en-us", "ja", "cmn", "en-gb+f3", "ko+m3"):
        assert voices.has(voice), voice
    lengths = {}
    for voice, text in (
        ("ko", "안녕하세요. 반갑습니다."),
        ("en-us+f3", "Hello there."),
        ("ja", "こんにちは"),
        ("cmn", "你好"),
        ("he", "שלום לך"),
        ("en-us", "<break time='20s'/> [[h@l'oU]]"),
    ):
        sound = await local.speak(text, voice)
        assert not is_silent(sound), voice
        lengths[voice] = sound.seconds
    assert 0.3 < lengths["ko"] < 5
    # Marks are read like any other text, and do nothing.
    assert lengths["en-us"] < 15
    assert is_silent(await local.speak("!!!", "ko"))


async def test_voices_sound_different_and_do_not_stay(local: LocalProvider) -> None:
    one = await local.speak("The same words", "en-us+f3")
    other = await local.speak("The same words", "en-us+m3")
    again = await local.speak("The same words", "en-us+f3")
    # The library breathes: two times are never quite the same.
    assert one.seconds == pytest.approx(again.seconds, rel=0.01)
    assert one.seconds != pytest.approx(other.seconds, rel=0.03)


@pytest.mark.parametrize("voice", ["xx", "en-us+nope", "../../x", "ko+../f3"])
async def test_an_unknown_voice_is_refused_by_the_process_too(
    local: LocalProvider, voice: str
) -> None:
    with pytest.raises(ValidationError, match="cannot be used"):
        await local.speak("Hello", voice)


async def test_a_process_that_is_killed_is_replaced(local: LocalProvider) -> None:
    before = await local.speak("Hello", "ko")
    for child in speaking(local):
        os.kill(child.pid, signal.SIGKILL)
    after = await local.speak("Hello", "ko")
    assert after.seconds == pytest.approx(before.seconds, rel=0.02)


async def test_what_nobody_waits_for_is_ended(local: LocalProvider) -> None:
    await local.voices()
    [child] = speaking(local)
    os.kill(child.pid, signal.SIGSTOP)
    waiting = asyncio.create_task(local.speak("Hello", "ko"))
    await until(lambda: not local._idle, "the process to be asked")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not is_silent(await local.speak("Hello", "ko"))
    await until(lambda: not child.is_running(), "the end of the process")


async def test_a_process_that_hangs_is_given_up() -> None:
    impatient = LocalProvider(processes=1, seconds=30)
    try:
        await impatient.voices()
        [child] = speaking(impatient)
        os.kill(child.pid, signal.SIGSTOP)
        impatient._seconds = 0.2
        with pytest.raises(SpeechError, match=r"did not answer within 0\.2 s"):
            await impatient.speak("Hello", "ko")
    finally:
        impatient.close()
    assert not child.is_running()


def speaking(local: LocalProvider) -> list[psutil.Process]:
    """The processes that wait to speak for a provider."""
    return [psutil.Process(each._process.pid) for each in local._idle]


async def test_a_service_is_asked_as_it_expects(server: SpeechServer) -> None:
    sound = await hosted(server.url).speak("Hello 안녕", "alloy")
    assert sound.seconds == pytest.approx(tone("Hello 안녕").seconds, abs=0.001)
    assert server.requests == [
        {"model": "m", "input": "Hello 안녕", "voice": "alloy", "response_format": "wav"}
    ]
    assert server.keys == ["Bearer k"]
    listed = await hosted(server.url).voices()
    assert [each.voice for each in listed.voices] == ["alloy"]


@pytest.mark.parametrize(
    ("status", "content", "kind", "said"),
    [
        (401, b"", AuthenticationError, "check HEADRACE_SPEECH_OPENAI_KEY"),
        (403, b"", AuthenticationError, "answered 403"),
        (400, b"unknown voice", ValidationError, "unknown voice"),
        (500, b"oops", SpeechError, "answered 500"),
        (503, b"", SpeechError, "answered 503"),
        (200, b"<html>", SpeechError, "answered no sound"),
        (200, b"", SpeechError, "answered no sound"),
    ],
)
async def test_what_a_service_answers_is_told_apart(
    server: SpeechServer, status: int, content: bytes, kind: type[HeadraceError], said: str
) -> None:
    server.answers = [(status, {}, content)]
    with pytest.raises(kind, match=said) as raised:
        await hosted(server.url).speak("Hello", "alloy")
    assert "Bearer" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "header", "delay"),
    [
        (429, "17", 17.0),
        (429, None, 5.0),
        (429, "nonsense", 5.0),
        (429, "999999999", 3600.0),
        (429, "-3", 0.0),
        (503, "9", 9.0),
    ],
)
async def test_a_service_says_when_to_come_back(
    server: SpeechServer, status: int, header: str | None, delay: float
) -> None:
    server.answers = [(status, {} if header is None else {"Retry-After": header}, b"")]
    with pytest.raises(RetryLater) as raised:
        await hosted(server.url).speak("Hello", "alloy")
    assert raised.value.delay == delay


async def test_a_service_may_say_it_as_a_date(server: SpeechServer) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    server.answers = [(429, {"Retry-After": later}, b"")]
    with pytest.raises(RetryLater) as raised:
        await hosted(server.url).speak("Hello", "alloy")
    assert raised.value.delay is not None
    assert 60 < raised.value.delay <= 100


async def test_a_service_that_does_not_answer_is_given_up(server: SpeechServer) -> None:
    server.hold = True
    with pytest.raises(SpeechError, match=r"no answer from .* within 0\.3 s"):
        await hosted(server.url, seconds=0.3).speak("Hello", "alloy")
    server.release_all()


async def test_a_service_that_is_not_there_is_worth_a_retry() -> None:
    with a_speech_server() as gone:
        url = gone.url
    with pytest.raises(SpeechError, match="no answer from"):
        await hosted(url).speak("Hello", "alloy")
