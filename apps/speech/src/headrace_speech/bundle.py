"""The bundle. What it brings is imported where it is used."""

from __future__ import annotations

import headrace
import headrace.bundles
from headrace_speech.settings import SpeechSettings

bundle = headrace.Bundle(
    "speech",
    summary="Dialogues: a script with several roles becomes one audio file",
    settings=SpeechSettings,
    register="headrace_speech.pipeline:register",
    routes="headrace_speech.routes:routes",
    commands="headrace_speech.commands:commands",
    tables=headrace.bundles.Tables("headrace_speech.migrations"),
    page=headrace.bundles.Page("headrace_speech.page", title="Speech"),
    demo="headrace_speech.demo:demo",
)
