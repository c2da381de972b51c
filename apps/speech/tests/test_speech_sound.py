"""Turns are read, made equally loud, joined with pauses, and encoded."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from speech_support.listening import FILLED_SECONDS, hear
from speech_support.speech_server import RATE, tone

from headrace_speech.script import Format
from headrace_speech.sound.mixing import (
    Mixer,
    at_rate,
    evened,
    is_silent,
    loudness,
    nearest_rate,
    trimmed,
)
from headrace_speech.sound.samples import NoSound, Sound, read_wav, write_wav


def mixed(turns: list[Sound], format: Format, rate: int = RATE, pause: float = 0.5) -> bytes:
    mixer = Mixer(
        rate=rate,
        samples=sum(len(at_rate(turn, rate)) for turn in turns),
        turns=len(turns),
        pause=pause,
        format=format,
        bit_rate=64,
    )
    content = b"".join(mixer.add(turn) for turn in turns) + mixer.end()
    assert mixer.total / rate == pytest.approx(
        sum(turn.seconds for turn in turns) + pause * (len(turns) - 1), abs=0.001
    )
    return content


@pytest.mark.parametrize("format", ["mp3", "wav"])
def test_turns_are_joined_with_pauses_between_them(format: Format) -> None:
    turns = [Sound(evened(tone("a" * 100, each).samples), RATE) for each in (0.01, 0.9, 0.3)]
    heard = hear(mixed(turns, format))
    assert heard.seconds == pytest.approx(3 + 2 * 0.5, abs=FILLED_SECONDS)
    assert heard.rate == RATE
    assert heard.loudness == pytest.approx(-20, abs=0.7)
    assert heard.silent_share == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("level", [0.001, 0.05, 0.9])
def test_every_turn_is_as_loud_as_the_others(level: float) -> None:
    assert loudness(evened(tone("a" * 20, level).samples)) == pytest.approx(0.1, rel=0.01)


def test_a_peak_is_bent_and_not_cut_off() -> None:
    samples = np.zeros(RATE, np.float32)
    samples[::1000] = 0.5
    louder = evened(samples)
    assert 0.8 < np.abs(louder).max() <= 1.0


def test_silence_stays_silence() -> None:
    silent = Sound(np.zeros(100, np.float32), RATE)
    assert is_silent(silent)
    assert is_silent(Sound(np.zeros(0, np.float32), RATE))
    assert not evened(silent.samples).any()
    assert len(trimmed(silent).samples) == 100


def test_silence_at_the_ends_of_a_turn_is_cut_off() -> None:
    middle = tone("a" * 10).samples
    padded = Sound(np.concatenate([np.zeros(5000, np.float32), middle, np.zeros(99)]), RATE)
    assert abs(len(trimmed(padded).samples) - len(middle)) < 10


def test_turns_of_other_rates_are_brought_to_one() -> None:
    slow = tone("a" * 100)
    other = Sound(at_rate(slow, 16_000), 16_000)
    assert other.seconds == pytest.approx(1.0, abs=0.001)
    assert hear(mixed([slow, other], "wav", pause=0.0)).seconds == pytest.approx(2.0, abs=0.001)
    assert [nearest_rate(each) for each in (22_050, 23_000, 96_000)] == [22_050, 24_000, 48_000]


def _wav(kind: int, bits: int, channels: int, data: bytes, *, size: int | None = None) -> bytes:
    form = struct.pack("<HHIIHH", kind, channels, RATE, 0, channels * bits // 8, bits)
    head = b"fmt " + struct.pack("<I", len(form)) + form + b"LIST\x03\x00\x00\x00abc\x00"
    count = len(data) if size is None else size
    return b"RIFF\xff\xff\xff\xffWAVE" + head + b"data" + struct.pack("<I", count) + data


@pytest.mark.parametrize(
    ("kind", "bits", "channels", "data"),
    [
        (1, 8, 1, bytes([192, 64])),
        (1, 16, 1, struct.pack("<2h", 16384, -16384)),
        (1, 16, 2, struct.pack("<4h", 32767, 1, -32767, -1)),
        (1, 24, 1, b"\x00\x00\x40\x00\x00\xc0"),
        (1, 32, 1, struct.pack("<2i", 2**30, -(2**30))),
        (3, 32, 1, struct.pack("<2f", 0.5, -0.5)),
    ],
)
def test_what_services_answer_is_read(kind: int, bits: int, channels: int, data: bytes) -> None:
    for size in (None, 0xFFFFFFFF):  # a server that streams does not know it
        sound = read_wav(_wav(kind, bits, channels, data, size=size))
        assert sound.samples == pytest.approx([0.5, -0.5], abs=0.001)
        assert sound.rate == RATE


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>no</html>",
        b"RIFF\0\0\0\0WAVE",
        _wav(1, 12, 1, b"ab"),
        _wav(7, 8, 1, b"ab"),
        _wav(3, 32, 1, struct.pack("<f", float("nan"))),
        b"RIFF\0\0\0\0WAVEdata\x02\0\0\0ab",
    ],
)
def test_what_is_no_sound_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(NoSound):
        read_wav(content)


def test_a_wav_file_comes_back_as_it_was() -> None:
    sound = tone("hello")
    again = read_wav(write_wav(sound))
    assert again.rate == sound.rate
    assert np.abs(again.samples - sound.samples).max() < 1e-4
