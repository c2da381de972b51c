"""Judges files with a library of others: length, loudness, and whether anything is heard."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import soundfile

# The ends of an MP3 are filled up to whole frames.
FILLED_SECONDS = 0.15


@dataclass(frozen=True)
class Heard:
    """What a file sounds like."""

    seconds: float
    rate: int
    loudness: float
    """Of what is not silent, in dB."""
    silent_share: float


def hear(content: bytes) -> Heard:
    """Decode a file."""
    samples, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    window = max(rate // 50, 1)
    whole = len(mono) - len(mono) % window
    power = np.sqrt(np.mean(np.square(mono[:whole].reshape(-1, window)), axis=1))
    heard = power[power > 0.005]
    level = 20 * np.log10(np.sqrt(np.mean(np.square(heard)))) if len(heard) else -np.inf
    silent = 1 - len(heard) / len(power) if len(power) else 1.0
    return Heard(len(mono) / rate, rate, float(level), silent)
