"""Dialogues are written in YAML or JSON, in a short or a long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import ValidationError
from headrace_speech.dialogue_files import read_dialogue
from headrace_speech.script import Turn


def written(folder: Path, text: str, name: str = "talk.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_both_forms_of_a_turn_are_read(tmp_path: Path) -> None:
    script = read_dialogue(
        written(
            tmp_path,
            "title: 인사\nvoices: {지나: ko+f2, Tom: en-us}\nturns:\n  - 지나: 안녕하세요\n"
            "  - role: Tom\n    text: |\n      Good morning.\n      It is late.\n  - Tom: 42\n"
            "  - 지나: yes\n",
        )
    )
    assert script.voice_assignments == {"지나": "ko+f2", "Tom": "en-us"}
    assert script.turns == [
        Turn("지나", "안녕하세요"),
        Turn("Tom", "Good morning.\nIt is late.\n"),
        Turn("Tom", "42"),
        Turn("지나", "yes"),
    ]
    assert (script.provider, script.format, script.title) == ("local", "mp3", "인사")


def test_json_is_read_and_options_count_first(tmp_path: Path) -> None:
    text = '{"provider": "local", "voice_assignments": {"A": "ko"}, "turns": [{"A": "a"}]}'
    path = written(tmp_path, text, "talk.json")
    script = read_dialogue(path, provider="openai", format="wav")
    assert (script.provider, script.format, script.title) == ("openai", "wav", "talk")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no fields"),
        ("- a", "has no fields"),
        ("turns: [", "is not YAML in UTF-8"),
        ("turns: a", "turns has to be a list"),
        ("turns: [a]", "turns[0] has to be `role: text`"),
        ("turns: [{a: b, c: d}]", "turns[0] has to be"),
        ("voices: [a]\nturns: []", "voices has to have"),
        ("turnz: []", 'unknown field "turnz"'),
        ("format: ogg\nturns: []", 'format is "ogg"'),
        ("turns: !!python/object:os.system x", "is not YAML in UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ValidationError) as refused:
        read_dialogue(path)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValidationError, match="is not YAML in UTF-8"):
        read_dialogue(path)
    path.write_bytes(b"a" * (2 * 1024 * 1024 + 1))
    with pytest.raises(ValidationError, match="more than"):
        read_dialogue(path)
