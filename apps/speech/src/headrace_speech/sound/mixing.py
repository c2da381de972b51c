"""Turns of even loudness with pauses between them, one after the other into a file."""

from __future__ import annotations

from typing import Protocol

import lameenc  # type: ignore[import-not-found]
import numpy as np

from headrace_speech.script import Format
from headrace_speech.sound.samples import Samples, Sound, to_bytes

LOUDNESS = 0.1
"""The root mean square of each turn: -20 dB of full scale."""
# Quieter than this (-80 dB) is silence, whatever is done to it.
SILENCE = 1e-4
# Peaks above this are bent instead of cut off.
KNEE = 0.8
QUALITY = 2
# What MP3 has.
RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_ENDLESS = 0xFFFFFFFF


def loudness(samples: Samples) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0


def is_silent(sound: Sound) -> bool:
    """Return whether nothing can be heard."""
    return loudness(sound.samples) < SILENCE


def trimmed(sound: Sound) -> Sound:
    """Return a sound without the silence at its ends: pauses are what is put between turns."""
    heard = np.flatnonzero(np.abs(sound.samples) > SILENCE)
    if not len(heard):
        return sound
    return Sound(sound.samples[heard[0] : heard[-1] + 1], sound.rate)


def evened(samples: Samples) -> Samples:
    """Return samples as loud as those of every other turn."""
    present = loudness(samples)
    if present < SILENCE:
        return samples
    louder = samples * np.float32(LOUDNESS / present)
    over = np.abs(louder) > KNEE
    if over.any():
        room = 1.0 - KNEE
        bent = KNEE + room * np.tanh((np.abs(louder[over]) - KNEE) / room)
        louder[over] = np.sign(louder[over]) * bent
    return louder


def at_rate(sound: Sound, rate: int) -> Samples:
    """Return a sound with another number of samples a second."""
    if sound.rate == rate or not len(sound.samples):
        return sound.samples
    count = max(1, round(len(sound.samples) * rate / sound.rate))
    places = np.arange(count) * (sound.rate / rate)
    between = np.interp(places, np.arange(len(sound.samples)), sound.samples)
    return np.asarray(between, np.float32)


def nearest_rate(rate: int) -> int:
    """Return a rate that every format has and that loses nothing, if there is one."""
    return next((each for each in RATES if each >= rate), RATES[-1])


class Encoder(Protocol):
    """Makes a file of samples, piece by piece."""

    def add(self, samples: Samples) -> bytes:
        """Return what is to be written now."""

    def end(self) -> bytes:
        """Return what is to be written at the end."""


class Mp3Encoder:
    """An MP3 of a constant bit rate."""

    def __init__(self, rate: int, bit_rate: int) -> None:
        self._lame = lameenc.Encoder()
        self._lame.set_bit_rate(bit_rate)
        self._lame.set_in_sample_rate(rate)
        self._lame.set_channels(1)
        self._lame.set_quality(QUALITY)
        self._lame.silence()

    def add(self, samples: Samples) -> bytes:
        """Return the frames that are complete."""
        return bytes(self._lame.encode(to_bytes(samples)))

    def end(self) -> bytes:
        """Return the last frames."""
        return bytes(self._lame.flush())


class WavEncoder:
    """A WAV file of a length that is known before."""

    def __init__(self, rate: int, samples: int) -> None:
        size = min(samples * 2, _ENDLESS - 36)
        self._head = (
            b"RIFF"
            + (size + 36).to_bytes(4, "little")
            + b"WAVEfmt "
            + b"".join(
                value.to_bytes(length, "little")
                for value, length in (
                    (16, 4), (1, 2), (1, 2), (rate, 4), (rate * 2, 4), (2, 2), (16, 2),
                )
            )
            + b"data"
            + size.to_bytes(4, "little")
        )  # fmt: skip

    def add(self, samples: Samples) -> bytes:
        """Return samples, the first time with the head of the file."""
        head, self._head = self._head, b""
        return head + to_bytes(samples)

    def end(self) -> bytes:
        """Return nothing more."""
        return self._head


class Mixer:
    """Joins turns, each when its turn has come. They are even already."""

    def __init__(
        self, *, rate: int, samples: int, turns: int, pause: float, format: Format, bit_rate: int
    ) -> None:
        """`samples` are those of all turns together, `pause` is in seconds."""
        self.rate = rate
        self._pause = np.zeros(round(pause * rate), np.float32)
        self._first = True
        self.total = samples + (turns - 1) * len(self._pause)
        """The samples of the whole file."""
        self._encoder: Encoder = (
            Mp3Encoder(rate, bit_rate) if format == "mp3" else WavEncoder(rate, self.total)
        )

    def add(self, turn: Sound) -> bytes:
        """Return what the file has more with this turn."""
        samples = at_rate(turn, self.rate)
        if not self._first:
            samples = np.concatenate([self._pause, samples])
        self._first = False
        return self._encoder.add(samples)

    def end(self) -> bytes:
        """Return the end of the file."""
        return self._encoder.end()
