"""What the tasks, the routes and the commands share: tables, providers and files."""

from __future__ import annotations

import contextlib
import functools
import uuid
from weakref import WeakKeyDictionary

from sqlalchemy.ext.asyncio import AsyncEngine

from headrace import App, ArtifactNotFound, InvalidName
from headrace.bundles import Setup
from headrace_speech.providers.base import Provider, check_voices
from headrace_speech.providers.hosted import HostedProvider
from headrace_speech.providers.local import LocalProvider
from headrace_speech.script import Format, Script, ScriptRefused, check_script, shown
from headrace_speech.settings import SpeechSettings
from headrace_speech.store.repository import AudioRepository

TASK = "speech.dialogue"
QUEUE = "speech"
OWNER = "speech"
TURNS_LAYER = "silver"
AUDIO_LAYER = "gold"
MEDIA_TYPES: dict[Format, str] = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FILES = uuid.UUID("6f2c3c1e-54cb-5f0e-9a55-6d3d6f6a0c11")


class SpeechService:
    """The parts of the bundle in one App, each made when it is first used."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._repositories: WeakKeyDictionary[AsyncEngine, AudioRepository] = WeakKeyDictionary()

    @property
    def app(self) -> App:
        """Return the App."""
        return self.setup.app

    @property
    def settings(self) -> SpeechSettings:
        """Return the settings of the bundle."""
        settings: SpeechSettings = self.setup.settings
        return settings

    @property
    def repository(self) -> AudioRepository:
        """Return the repository of the running event loop."""
        engine = self.setup.engine()
        return self._repositories.setdefault(engine, AudioRepository(engine))

    @functools.cached_property
    def providers(self) -> dict[str, Provider]:
        """Return who can speak, by name."""
        settings = self.settings
        local = LocalProvider(processes=settings.processes, seconds=settings.turn_seconds)
        found: dict[str, Provider] = {local.name: local}
        if settings.openai_url is not None:
            hosted = HostedProvider(
                settings.openai_url,
                key=settings.openai_key,
                model=settings.openai_model,
                voices=settings.openai_voices,
                seconds=settings.turn_seconds,
            )
            found[hosted.name] = hosted
        return found

    def provider(self, name: str) -> Provider:
        """Return a provider. Raises `ScriptRefused` if there is none of this name."""
        found = self.providers.get(name)
        if found is None:
            known = ", ".join(self.providers)
            hint = "" if "openai" in self.providers else "; openai needs HEADRACE_SPEECH_OPENAI_URL"
            raise ScriptRefused(
                "provider",
                f"is {shown(name)}, which is not known here",
                value=name,
                remedy=f"use one of {known}{hint}",
            )
        return found

    async def check(self, script: Script) -> Script:
        """Return a script that can be spoken. Raises `ScriptRefused`, or `InvalidSetting` if its
        provider is not installed here.
        """
        check_script(script, self.settings)
        provider = self.provider(script.provider)
        check_voices(script.voice_assignments, await provider.voices())
        return script

    async def remove_file(self, artifact: str) -> None:
        """Remove a file for which there is no row any longer; it is fine if it is gone."""
        with contextlib.suppress(ArtifactNotFound, InvalidName):
            await self.app.artifacts.release(artifact, owner=OWNER)
        await self.app.artifacts.remove(artifact)

    def close(self) -> None:
        """End the processes that speak."""
        local = self.__dict__.get("providers", {}).get(LocalProvider.name)
        if isinstance(local, LocalProvider):
            local.close()


def audio_file_id_of(job_id: str) -> str:
    """Return the id of the file that a job makes: the same for every attempt."""
    return str(uuid.uuid5(_AUDIO_FILES, job_id))


def audio_path(provider: str, audio_file_id: str, format: Format) -> str:
    """Return where a file is, as callers see it."""
    return f"storage/{provider}/{audio_file_id}.{format}"


def turn_name(place: int) -> str:
    """Return the file of a turn, by its place in the script from 0 on."""
    return f"turns/{place + 1:04d}.wav"
