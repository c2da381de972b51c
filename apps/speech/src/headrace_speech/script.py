"""Scripts as callers hand them in, and what is wrong with them. No I/O."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from headrace import ValidationError
from headrace_speech.settings import SpeechSettings

Format = Literal["mp3", "wav"]
FORMATS: tuple[Format, ...] = ("mp3", "wav")
LONGEST_NAME = 100
LONGEST_TITLE = 200
# Letters that change the order of those around them: what is shown would not be what is meant.
_TURNED = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset("\n\r\t")


class ScriptRefused(ValidationError):
    """A script that cannot be spoken. It names the field, its value and the remedy."""

    def __init__(self, field: str, problem: str, *, value: object = None, remedy: str) -> None:
        super().__init__(f"{field} {problem}; {remedy}")
        self.field = field
        self.value = value
        self.remedy = remedy


class Turn(msgspec.Struct, forbid_unknown_fields=True):
    """What one role says at once."""

    role: str
    text: str


class Script(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who says what with which voice."""

    provider: str = "local"
    turns: list[Turn]
    voice_assignments: dict[str, str]
    format: Format = "mp3"
    title: str = ""


def check_script(script: Script, settings: SpeechSettings) -> Script:
    """Return a script that may be spoken, as far as can be said without its provider. Raises
    `ScriptRefused`.
    """
    _check_name("provider", script.provider)
    if script.format not in FORMATS:
        raise ScriptRefused(
            "format",
            f"is {shown(script.format)}",
            value=script.format,
            remedy=f"use one of {', '.join(FORMATS)}",
        )
    if script.title:
        _check_name("title", script.title, LONGEST_TITLE)
    _check_turns(script.turns, settings)
    for role, voice in script.voice_assignments.items():
        _check_name("voice_assignments", role)
        _check_name(f"voice_assignments[{shown(role)}]", voice)
    _check_roles(script.turns, script.voice_assignments)
    return script


def _check_turns(turns: Sequence[Turn], settings: SpeechSettings) -> None:
    if not turns:
        raise ScriptRefused("turns", "is empty", value=[], remedy="give at least one turn")
    if len(turns) > settings.most_turns:
        raise ScriptRefused(
            "turns",
            f"has {len(turns):,} entries, at most {settings.most_turns:,} are taken",
            value=len(turns),
            remedy="cut the script into several jobs",
        )
    total = 0
    for place, turn in enumerate(turns):
        field = f"turns[{place}].text"
        _check_name(f"turns[{place}].role", turn.role)
        if len(turn.text) > settings.turn_characters:
            raise ScriptRefused(
                field,
                f"has {len(turn.text):,} characters, at most {settings.turn_characters:,} "
                "are taken",
                value=len(turn.text),
                remedy="cut it into several turns",
            )
        _check_letters(field, turn.text, allowed=_BREAKS)
        if not turn.text.strip():
            raise ScriptRefused(field, "is empty", value=turn.text, remedy="give words to speak")
        total += len(turn.text)
    if total > settings.most_characters:
        raise ScriptRefused(
            "turns",
            f"has {total:,} characters in all, at most {settings.most_characters:,} are taken",
            value=total,
            remedy="cut the script into several jobs",
        )


def _check_roles(turns: Sequence[Turn], voices: Mapping[str, str]) -> None:
    for place, turn in enumerate(turns):
        if turn.role not in voices:
            known = ", ".join(shown(role) for role in list(voices)[:10]) or "nobody"
            raise ScriptRefused(
                f"turns[{place}].role",
                f"is {shown(turn.role)}, which has no voice (voice_assignments has {known})",
                value=turn.role,
                remedy="give it one in voice_assignments",
            )


def _check_name(field: str, text: str, longest: int = LONGEST_NAME) -> None:
    if not text.strip():
        raise ScriptRefused(field, "is empty", value=text, remedy="give it a name")
    if len(text) > longest:
        raise ScriptRefused(
            field,
            f"has {len(text):,} characters, at most {longest} are taken",
            value=shown(text),
            remedy="shorten it",
        )
    _check_letters(field, text, turned=True)


def _check_letters(
    field: str, text: str, *, allowed: frozenset[str] = frozenset(), turned: bool = False
) -> None:
    for place, letter in enumerate(text):
        # Cs: half of a letter, which no file and no database can hold.
        control = unicodedata.category(letter) in ("Cc", "Cs") and letter not in allowed
        if control or (turned and letter in _TURNED):
            kind = "a control character" if control else "a letter that turns others around"
            raise ScriptRefused(
                field,
                f"has {kind} at character {place + 1} (U+{ord(letter):04X})",
                value=f"U+{ord(letter):04X}",
                remedy="remove it",
            )


def shown(text: Any) -> str:
    """Return a text as errors quote it: short, and without letters that do something."""
    plain = str(text)
    plain = "".join(
        letter if letter.isprintable() and letter not in _TURNED else "\ufffd" for letter in plain
    )
    return f'"{plain if len(plain) <= 60 else plain[:57] + "..."}"'
