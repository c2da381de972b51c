"""Settings of the bundle: `HEADRACE_SPEECH_<NAME>`, or `[speech]` in headrace.toml."""

from __future__ import annotations

import msgspec

VOICES = "alloy ash ballad coral echo fable nova onyx sage shimmer verse"


class SpeechSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be changed without touching code."""

    at_once: int = 3
    """So many jobs of one user run at the same time."""
    pause_seconds: float = 0.4
    """Between two turns."""
    bit_rate: int = 64
    """Of MP3 files, in kilobits a second."""
    most_turns: int = 500
    most_characters: int = 50_000
    """Of all turns of a script together."""
    turn_characters: int = 4_096
    turn_seconds: float = 120.0
    """A turn that takes a provider longer is given up, and tried again."""
    processes: int = 2
    """So many turns are spoken at once on this machine, each in a process of its own."""
    openai_url: str | None = None
    """An OpenAI-compatible service, such as https://api.example.com/v1: the provider `openai`."""
    openai_key: str | None = None
    openai_model: str = "gpt-4o-mini-tts"
    openai_voices: list[str] = msgspec.field(default_factory=VOICES.split)
    """The voices that the service has."""

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= 1000:
            raise ValueError(f"at_once is {self.at_once}; give 1 to 1000")
        if not 0 <= self.pause_seconds <= 60:
            raise ValueError(f"pause_seconds is {self.pause_seconds:g}; give 0 to 60")
        if not 8 <= self.bit_rate <= 160:
            raise ValueError(f"bit_rate is {self.bit_rate}; give 8 to 160")
        for name in ("most_turns", "most_characters", "turn_characters", "processes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; give at least 1")
        if self.turn_seconds <= 0:
            raise ValueError(f"turn_seconds is {self.turn_seconds:g}; give more than 0")
