"""A script that cannot be spoken is refused with one clear error: field, value, remedy."""

from __future__ import annotations

from typing import Any

import pytest
from speech_support.making import a_script

from headrace_speech.providers.base import Voice, Voices, check_voices
from headrace_speech.script import Script, ScriptRefused, Turn, check_script
from headrace_speech.settings import SpeechSettings

SETTINGS = SpeechSettings()
HUGE = "a" * 4_097


def turned(role: str = "Ann", text: str = "Hello") -> dict[str, Any]:
    return {"turns": [Turn(role="Ann", text="Hello"), Turn(role=role, text=text)]}


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"turns": []}, "turns", "is empty; give at least one turn"),
        ({"turns": [Turn("Ann", "a")] * 10_000}, "turns", "has 10,000 entries, at most 500"),
        ({"turns": [Turn("Ann", "a" * 4_000)] * 13}, "turns", "52,000 characters in all"),
        (turned(text=HUGE), "turns[1].text", "has 4,097 characters, at most 4,096"),
        (turned(text=" \n\t "), "turns[1].text", "is empty; give words"),
        (turned(text="a\x00b"), "turns[1].text", "a control character at character 2 (U+0000)"),
        (turned(text="bell\x07"), "turns[1].text", "(U+0007); remove it"),
        (turned(text="\ud800"), "turns[1].text", "U+D800"),
        (turned(role="Carl"), "turns[1].role", 'is "Carl", which has no voice'),
        (turned(role=""), "turns[1].role", "is empty"),
        (turned(role="A\u202enn"), "turns[1].role", "turns others around"),
        (turned(role="n" * 101), "turns[1].role", "has 101 characters"),
        ({"provider": ""}, "provider", "is empty"),
        ({"title": "a\nb"}, "title", "a control character"),
        ({"format": "ogg"}, "format", 'is "ogg"; use one of mp3, wav'),
        ({"voice_assignments": {}}, "turns[0].role", "voice_assignments has nobody"),
        (
            {"voice_assignments": {"Ann": " ", "Bob": "echo"}},
            'voice_assignments["Ann"]',
            "is empty",
        ),
    ],
)
def test_a_wrong_script_is_refused(fields: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ScriptRefused) as refused:
        check_script(a_script("Hello", **fields), SETTINGS)
    assert refused.value.field == field
    assert said in str(refused.value)
    assert refused.value.remedy in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "text", ["안녕하세요", "שלום לך", "مرحبا", "two\nlines", "👩‍👩‍👧 family", "x" * 4_096, "42"]
)
def test_any_script_of_the_world_is_taken(text: str) -> None:
    script = a_script(text, text)
    assert check_script(script, SETTINGS) is script


def test_a_voice_and_its_variant_have_to_be_in_the_list() -> None:
    voices = Voices(
        provider="local",
        voices=(Voice(voice="ko", name="Korean"), Voice(voice="en-us", name="English")),
        variants=(Voice(voice="f3", name="Female 3"),),
    )
    check_voices({"Ann": "ko", "Bob": "en-us+f3"}, voices)
    for voice, said in (
        ("xx", 'is "xx", a voice that provider "local" does not have'),
        ("ko+nope", 'is "ko+nope", a variant that'),
        ("en-us+", "a variant that"),
        ("KO", "a voice that"),
        ("ko+f3+f3", "a variant that"),
    ):
        with pytest.raises(ScriptRefused) as refused:
            check_voices({"Ann": voice}, voices)
        assert said in str(refused.value)
        assert refused.value.field == 'voice_assignments["Ann"]'
        assert refused.value.value == voice


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at_once": 0}, "at_once"),
        ({"pause_seconds": -1.0}, "pause_seconds"),
        ({"bit_rate": 500}, "bit_rate"),
        ({"most_turns": 0}, "most_turns"),
        ({"turn_seconds": 0.0}, "turn_seconds"),
    ],
)
def test_a_wrong_setting_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SpeechSettings(**given)


def test_a_script_is_mp3_by_this_machine_if_nothing_else_is_said() -> None:
    script = Script(turns=[], voice_assignments={})
    assert (script.provider, script.format) == ("local", "mp3")
