"""Sound as numbers, and WAV files of it."""

from __future__ import annotations

import io
import struct
import wave
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float32]

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
LOWEST_RATE, HIGHEST_RATE = 8_000, 192_000


class NoSound(Exception):
    """Bytes that are no sound that can be read."""


@dataclass(frozen=True, slots=True)
class Sound:
    """One channel, from -1 to 1."""

    samples: Samples
    rate: int

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return len(self.samples) / self.rate


def to_bytes(samples: Samples) -> bytes:
    """Return samples as 16-bit numbers."""
    scaled = np.rint(np.clip(samples, -1.0, 1.0) * 32767.0)
    return bytes(scaled.astype("<i2").tobytes())


def from_bytes(content: bytes) -> Samples:
    """Return 16-bit numbers as samples."""
    whole = len(content) - len(content) % 2
    return (np.frombuffer(content[:whole], "<i2").astype(np.float32)) / np.float32(32767.0)


def write_wav(sound: Sound) -> bytes:
    """Return a WAV file."""
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sound.rate)
        file.writeframes(to_bytes(sound.samples))
    return target.getvalue()


def read_wav(content: bytes) -> Sound:
    """Return the sound of a WAV file, its channels as one. Raises `NoSound`.

    Services that stream write sizes that they do not know yet: the data then goes to the end.
    """
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise NoSound("it does not begin as a WAV file does")
    form: tuple[int, int, int, int] | None = None
    at = 12
    while at + 8 <= len(content):
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        at += 8
        if name == b"fmt ":
            form = _form(content[at : at + size])
        elif name == b"data":
            if form is None:
                raise NoSound("its data comes before its format")
            return _decoded(content[at : at + size], *form)
        at += size + size % 2
    raise NoSound("it has no data")


def _form(chunk: bytes) -> tuple[int, int, int, int]:
    if len(chunk) < 16:
        raise NoSound("its format is cut off")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", chunk[:16])
    if kind == _EXTENSIBLE and len(chunk) >= 26:
        kind = int.from_bytes(chunk[24:26], "little")
    if not 1 <= channels <= 8 or not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise NoSound(f"it has {channels} channels and {rate} samples a second")
    if (kind, bits) not in ((_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32)):
        raise NoSound(f"its samples are of kind {kind} with {bits} bits")
    return kind, channels, rate, bits


def _decoded(data: bytes, kind: int, channels: int, rate: int, bits: int) -> Sound:
    frame = channels * bits // 8
    data = data[: len(data) - len(data) % frame]
    if kind == _FLOAT:
        values = np.frombuffer(data, "<f4").astype(np.float32)
    elif bits == 8:
        values = (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / 128.0
    elif bits == 24:
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3)
        padded = np.zeros((len(parts), 4), np.uint8)
        padded[:, 1:] = parts
        values = padded.view("<i4").reshape(-1).astype(np.float32) / np.float32(2**31)
    else:
        whole = np.frombuffer(data, f"<i{bits // 8}")
        values = whole.astype(np.float32) / np.float32(2 ** (bits - 1))
    mixed = values.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    if not np.isfinite(mixed).all():
        raise NoSound("it has samples that are no numbers")
    return Sound(mixed, rate)
