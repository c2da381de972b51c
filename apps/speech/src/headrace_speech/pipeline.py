"""The task `speech.dialogue`: speak each turn, join them, and enter the file.

Each turn is a stage of its own: a later attempt speaks none again that was spoken. The file is
there before its row, and kept for as long as that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec

from headrace import (
    BUGS,
    App,
    ArtifactNotFound,
    AuthenticationError,
    Context,
    InvalidSetting,
    Lane,
    LeaseLost,
    ValidationError,
)
from headrace.bundles import Setup
from headrace_speech.providers.base import SpeechError
from headrace_speech.script import Script, shown
from headrace_speech.service import (
    AUDIO_LAYER,
    MEDIA_TYPES,
    OWNER,
    QUEUE,
    TASK,
    TURNS_LAYER,
    SpeechService,
    audio_file_id_of,
    audio_path,
    turn_name,
)
from headrace_speech.sound.mixing import Mixer, evened, is_silent, nearest_rate, trimmed
from headrace_speech.sound.samples import Sound, read_wav, write_wav
from headrace_speech.store.records import AudioRow, Stored
from headrace_speech.tidy import TIDY_TASK, Tidied, tidy

NEVER_RETRY: tuple[type[Exception], ...] = (
    ValidationError,
    AuthenticationError,
    InvalidSetting,
    # Ten minutes are for the whole script: what takes longer ends, and can be handed in again.
    TimeoutError,
    *BUGS,
)
TIMEOUT_SECONDS = 600.0
EVENT = "audio.created.v1"
# The progress at which the turns are spoken; then they are joined.
SPOKEN = 90


class AudioCreated(msgspec.Struct, kw_only=True):
    """A file that was made: the result of its job, and the body of the event `audio.created.v1`."""

    audio_file_id: str
    job_id: str
    user: str
    provider: str
    path: str
    media_type: str
    seconds: float
    bytes: int
    checksum: str
    turns: int


class SpokenTurn(msgspec.Struct, kw_only=True):
    """A turn that was spoken: where it is, and how long."""

    path: str
    samples: int
    rate: int


def register(app: App, setup: Setup) -> None:
    """Add the tasks."""
    service = SpeechService(setup)
    lane = Lane("user:{user}", width=service.settings.at_once)

    @app.task(
        TASK,
        queue=QUEUE,
        lane=lane,
        retries=3,
        never_retry=NEVER_RETRY,
        timeout=TIMEOUT_SECONDS,
        on_crash="fail",
    )
    async def dialogue(ctx: Context, user: str, script: Script) -> AudioCreated:
        """Make one audio file of a script. It is handed in by `POST /speech/jobs`."""
        return await _Attempt(service, ctx, user, script).run()

    @app.task(TIDY_TASK, queue=QUEUE)
    async def tidy_up(ctx: Context) -> Tidied:
        """Release files that no row names, and forget deleted jobs that are gone."""
        return await tidy(service)

    app.add_schedule(tidy_up, "23 * * * *", name="speech-tidy")
    app.event_type(EVENT, AudioCreated, summary="An audio file was made and can be downloaded.")


@dataclass
class _Attempt:
    """One attempt at one script."""

    service: SpeechService
    ctx: Context
    user: str
    script: Script

    async def run(self) -> AudioCreated:
        repository = self.service.repository
        row = await repository.of_job(self.ctx.job_id)
        if row is None:
            if await repository.deleted([self.ctx.job_id]):
                raise ValidationError("the job was deleted; hand the script in as a new one")
            await self.service.check(self.script)
            row = await self._enter(await self._speak_all())
        # Else the attempt before has entered it, and was killed before it could say so.
        return self._finished(row)

    async def _speak_all(self) -> list[SpokenTurn]:
        spoken: list[SpokenTurn] = []
        count = len(self.script.turns)
        for place in range(count):
            self.ctx.progress(SPOKEN * place / count, f"turn {place + 1} of {count}")
            spoken.append(
                await self.ctx.stage("speaking", self._speak, place, key=place + 1, done="spoken")
            )
        return spoken

    async def _speak(self, place: int) -> SpokenTurn:
        """Speak one turn and store it, as loud as every other."""
        turn = self.script.turns[place]
        voice = self.script.voice_assignments[turn.role]
        which = f"turn {place + 1} of {len(self.script.turns)} ({shown(turn.role)})"
        provider = self.service.provider(self.script.provider)
        try:
            sound = await provider.speak(turn.text, voice)
        except SpeechError as error:
            raise SpeechError(f"{which}: {error}") from error
        if is_silent(sound):
            raise ValidationError(
                f"{which}: nothing can be heard of {shown(turn.text)} by voice {shown(voice)}; "
                "give it words, or a voice of its language"
            )
        sound, content = await asyncio.to_thread(_prepared, sound)
        path = await self.ctx.artifacts.put(
            turn_name(place),
            content,
            layer=TURNS_LAYER,
            media_type=MEDIA_TYPES["wav"],
            metadata={"seconds": f"{sound.seconds:.3f}"},
        )
        return SpokenTurn(path=path, samples=len(sound.samples), rate=sound.rate)

    async def _enter(self, spoken: Sequence[SpokenTurn]) -> AudioRow:
        """Store the file, keep it, and enter its row, in this order: what a crash leaves is a file
        without a row, which an attempt that follows uses and `tidy` removes.
        """
        ctx, script = self.ctx, self.script
        audio_file_id = audio_file_id_of(ctx.job_id)
        name = audio_path(script.provider, audio_file_id, script.format)
        ctx.progress(SPOKEN, "joining the turns")
        seconds = await ctx.stage("mixing", self._mix, name, spoken, done="mixed", transient=True)
        found = await ctx.artifacts.find(name, layer=AUDIO_LAYER)
        row = AudioRow(
            audio_file_id=audio_file_id,
            job_id=ctx.job_id,
            user=self.user,
            provider=script.provider,
            title=script.title,
            path=name,
            artifact=found.path,
            media_type=MEDIA_TYPES[script.format],
            seconds=round(seconds, 3),
            bytes=found.size,
            checksum=found.sha256 or "",
            turns=len(script.turns),
            retry_count=ctx.attempt - 1,
            token=ctx.token,
            created_at=self.service.app.clock.utcnow(),
        )
        match await self.service.repository.enter(row):
            case Stored.DELETED:
                await self.service.remove_file(row.artifact)
                raise ValidationError("the job was deleted while its file was made")
            case Stored.STALE:
                raise LeaseLost(f"a later attempt has entered the file of job {ctx.job_id}")
            case Stored.STORED:
                # Again: `tidy` may have taken it for one that nobody will enter.
                await self._keep(name)
        return row

    async def _mix(self, name: str, spoken: Sequence[SpokenTurn]) -> float:
        """Join the turns to a file that is kept; return its length in seconds."""
        script, settings = self.script, self.service.settings
        rate = nearest_rate(max(turn.rate for turn in spoken))
        mixer = Mixer(
            rate=rate,
            samples=sum(_samples(turn, rate) for turn in spoken),
            turns=len(spoken),
            pause=settings.pause_seconds,
            format=script.format,
            bit_rate=settings.bit_rate,
        )
        try:
            # An attempt that was killed may have come so far. What is stored is stored whole.
            await self._keep(name)
        except ArtifactNotFound:
            await self.ctx.artifacts.put(
                name,
                self._joined(mixer, spoken),
                layer=AUDIO_LAYER,
                media_type=MEDIA_TYPES[script.format],
                metadata={"job": self.ctx.job_id},
            )
            await self._keep(name)
        return mixer.total / rate

    async def _keep(self, name: str) -> None:
        reason = f"audio file {name}"
        await self.ctx.artifacts.keep(name, owner=OWNER, reason=reason, layer=AUDIO_LAYER)

    async def _joined(self, mixer: Mixer, spoken: Sequence[SpokenTurn]) -> AsyncIterator[bytes]:
        """Yield the file turn by turn: a long script is never in memory at once."""

        def added(content: bytes) -> bytes:
            return mixer.add(read_wav(content))

        for turn in spoken:
            piece = await asyncio.to_thread(added, await self.ctx.artifacts.get(turn.path))
            if piece:
                yield piece
        yield await asyncio.to_thread(mixer.end)

    def _finished(self, row: AudioRow) -> AudioCreated:
        self.ctx.progress(100, f"{row.seconds:.1f} s of {row.turns} turns")
        created = AudioCreated(
            audio_file_id=row.audio_file_id,
            job_id=row.job_id,
            user=row.user,
            provider=row.provider,
            path=row.path,
            media_type=row.media_type,
            seconds=row.seconds,
            bytes=row.bytes,
            checksum=row.checksum,
            turns=row.turns,
        )
        self.ctx.publish(EVENT, created, key=row.audio_file_id)
        return created


def _prepared(sound: Sound) -> tuple[Sound, bytes]:
    whole = trimmed(sound)
    ready = Sound(evened(whole.samples), whole.rate)
    return ready, write_wav(ready)


def _samples(turn: SpokenTurn, rate: int) -> int:
    """Return how many samples a turn has at a rate."""
    return turn.samples if turn.rate == rate else max(1, round(turn.samples * rate / turn.rate))
