"""What every provider does, and which voices it may be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Protocol

import msgspec

from headrace import HeadraceError
from headrace_speech.script import ScriptRefused, shown
from headrace_speech.sound.samples import Sound

NEAREST = 5


class SpeechError(HeadraceError):
    """A provider was not reached, or answered something that is no sound. Worth a retry."""


class Voice(msgspec.Struct, kw_only=True, frozen=True):
    """A voice by the name that a script uses."""

    voice: str
    name: str
    language: str | None = None
    gender: str | None = None


class Voices(msgspec.Struct, kw_only=True, frozen=True):
    """The voices of a provider. Each may be followed by `+` and a variant, where there are some."""

    provider: str
    voices: tuple[Voice, ...]
    variants: tuple[Voice, ...] = ()

    def has(self, voice: str) -> bool:
        """Return whether there is such a voice, with its variant."""
        base, plus, variant = voice.partition("+")
        if not any(each.voice == base for each in self.voices):
            return False
        return not plus or any(each.voice == variant for each in self.variants)


class Provider(Protocol):
    """Turns texts into sound."""

    name: str

    async def voices(self) -> Voices:
        """Return the voices that there are."""

    async def speak(self, text: str, voice: str) -> Sound:
        """Return a text as sound. Raises `ValidationError` or `AuthenticationError` where trying
        again cannot help, `RetryLater` if the provider says when, and `SpeechError` otherwise.
        """


def check_voices(assignments: Mapping[str, str], voices: Voices) -> None:
    """Raise `ScriptRefused` for a voice that the provider does not have."""
    for role, voice in assignments.items():
        if voices.has(voice):
            continue
        base = voice.partition("+")[0]
        known = any(each.voice == base for each in voices.voices)
        what = "a variant" if known else "a voice"
        like = [each.voice for each in (voices.variants if known else voices.voices)]
        asked = voice.partition("+")[2] if known else base
        near = get_close_matches(asked.lower(), like, NEAREST) or like[:NEAREST]
        raise ScriptRefused(
            f"voice_assignments[{shown(role)}]",
            f"is {shown(voice)}, {what} that provider {shown(voices.provider)} does not have",
            value=voice,
            remedy=f"use one of GET /speech/voices, such as {', '.join(near) or 'none'}",
        )
