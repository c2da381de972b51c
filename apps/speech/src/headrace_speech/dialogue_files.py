"""Dialogues in files: YAML or JSON, as people write them.

voices:
  Mina: ko+f3
  Tom: en-us
turns:
  - Mina: 안녕하세요
  - role: Tom
    text: Good morning
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headrace import ValidationError
from headrace_speech.script import FORMATS, Format, Script, Turn, shown

LARGEST = 2 * 1024 * 1024
_FIELDS = ("provider", "title", "format", "voices", "voice_assignments", "turns")


def read_dialogue(path: Path, *, provider: str | None = None, format: str | None = None) -> Script:
    """Return the script of a file; `provider` and `format` count before what it says. Raises
    `ValidationError`.
    """
    if path.stat().st_size > LARGEST:
        raise ValidationError(f"{path} has more than {LARGEST:,} bytes; cut it into several files")
    try:
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8-sig"))
    except (YAMLError, UnicodeDecodeError) as error:
        raise ValidationError(
            f"{path} is not YAML in UTF-8: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(document, dict):
        raise ValidationError(f"{path} has no fields; it needs turns and voices")
    for name in document:
        if name not in _FIELDS:
            raise ValidationError(
                f"{path} has the unknown field {shown(name)}; known are {', '.join(_FIELDS)}"
            )
    wanted = format or document.get("format", "mp3")
    if wanted not in FORMATS:
        raise ValidationError(f"{path}: format is {shown(wanted)}; use one of {', '.join(FORMATS)}")
    chosen: Format = wanted
    voices = document.get("voices") or document.get("voice_assignments") or {}
    if not isinstance(voices, dict):
        raise ValidationError(f"{path}: voices has to have a voice for each role")
    return Script(
        provider=provider or str(document.get("provider", "local")),
        title=str(document.get("title") or path.stem),
        format=chosen,
        voice_assignments={str(role): str(voice) for role, voice in voices.items()},
        turns=_turns(path, document.get("turns")),
    )


def _turns(path: Path, given: Any) -> list[Turn]:
    if not isinstance(given, list):
        raise ValidationError(f"{path}: turns has to be a list of `- role: text`")
    turns = []
    for place, each in enumerate(given):
        if isinstance(each, dict) and set(each) == {"role", "text"}:
            turns.append(Turn(role=_text(each["role"]), text=_text(each["text"])))
        elif isinstance(each, dict) and len(each) == 1:
            ((role, text),) = each.items()
            turns.append(Turn(role=_text(role), text=_text(text)))
        else:
            raise ValidationError(
                f"{path}: turns[{place}] has to be `role: text`, got {shown(each)}"
            )
    return turns


def _text(value: Any) -> str:
    """A turn that says 42 is not quoted by everybody."""
    return "" if value is None else str(value)
