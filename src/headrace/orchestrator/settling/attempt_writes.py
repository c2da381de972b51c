"""What running attempts write: progress in batches, stages at once, all guarded by the token."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable
from headrace.loop import Loop
from headrace.model.durable.writes import Entry, Note
from headrace.model.job import ClaimedJob
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.notes")

PAUSE = 0.2
BATCH = 200

# A job and its token: one attempt.
Key = tuple[str, int]


class PendingProgress:
    """The latest word of one attempt on its progress. None leaves a field as it is."""

    __slots__ = ("message", "progress", "stage")

    def __init__(self) -> None:
        self.stage: str | None = None
        self.progress: float | None = None
        self.message: str | None = None


class AttemptWriter(Loop):
    """Sends what attempts have to say: the latest progress of each, and every durable write.

    The engine judges a note by its token and names the jobs of those that it refuses. An attempt
    that was given up may go on talking in its thread while the next one runs here, so no call has
    notes of two attempts at one job: a refusal would be taken for both. Tokens grow, so the
    earlier attempt is refused without asking.
    """

    name = "attempt writer"

    def __init__(
        self, *, engine: Engine, telemetry: Telemetry, on_refused: Callable[[str, int], None]
    ) -> None:
        super().__init__()
        self.engine = engine
        self.telemetry = telemetry
        # Drafts stay here until they have been written; also while they are on their way.
        self.pending: dict[Key, PendingProgress] = {}
        # A job with an unsent draft has finished: write it before its outcome is settled.
        self.flush_before_settle = False
        self._writes: list[tuple[Note, asyncio.Future[bool]]] = []
        self._on_refused = on_refused
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        # A timer runs until drafts are sent; then they are due.
        self._armed = False
        self._due = False

    def progress(
        self,
        job: ClaimedJob,
        *,
        stage: str | None = None,
        progress: float | None = None,
        message: str | None = None,
    ) -> None:
        """Remember the latest. May be called from any thread; costs no trip."""
        key = (job.id, job.token)
        with self._guard:
            progress_note = self.pending.get(key)
            if progress_note is None:
                progress_note = self.pending[key] = PendingProgress()
            if stage is not None:
                progress_note.stage = stage
            if progress is not None:
                progress_note.progress = progress
            if message is not None:
                progress_note.message = message
            if self._armed:
                return
            self._armed = True
        self._loop.call_soon_threadsafe(self._arm)

    async def write(
        self, job: ClaimedJob, *, stage: str | None, progress: float | None, entry: Entry | None
    ) -> bool:
        """Write durably, together with what others write now. False: refused, the lease is lost.

        One write: it carries what the attempt has told and was not sent yet, the start of its stage
        for example. Waits as long as the engine is away: work that is done is worth more than a
        retry.
        """
        message: str | None = None
        progress_note = self._take(job)
        if progress_note is not None:
            stage = progress_note.stage if stage is None else stage
            progress = progress_note.progress if progress is None else progress
            message = progress_note.message
        entries = () if entry is None else (entry,)
        note = Note(job.id, job.token, stage, progress, message, entries)
        done: asyncio.Future[bool] = self._loop.create_future()
        self._writes.append((note, done))
        self.wake()
        return await done

    def discard(self, job: ClaimedJob) -> None:
        """Drop what a lost attempt had to say."""
        self._take(job)

    def _take(self, job: ClaimedJob) -> PendingProgress | None:
        key = (job.id, job.token)
        if key not in self.pending:
            return None
        with self._guard:
            return self.pending.pop(key, None)

    async def tick(self) -> None:
        """Send everything that waits, then wait for more."""
        await self.flush()
        if self._writes:
            self.wake()

    async def flush(self) -> None:
        """Send everything that waits. Returns when it, and what was on its way, has arrived."""
        async with self._sending:
            # A write must not drag along what others tell: that is sent now and then.
            drafts = self._pending_notes() if self._due or self.flush_before_settle else []
            self._due = self.flush_before_settle = False
            writes, self._writes = self._writes[:BATCH], self._writes[BATCH:]
            # An attempt's draft goes before its write: it was there first.
            notes = [*drafts, *(note for note, _ in writes)]
            if not notes:
                return
            try:
                answers = await self._send(notes)
            except BaseException:
                self._writes[:0] = writes
                self.flush_before_settle = True
                raise
            self._sent(drafts)
            # Whoever waits for a write hears of its refusal there; others are told to stop.
            told = {(note.job_id, note.token) for note, _ in writes}
            for progress_note, answer in zip(drafts, answers[: len(drafts)], strict=True):
                if answer is False and (progress_note.job_id, progress_note.token) not in told:
                    self._on_refused(progress_note.job_id, progress_note.token)
            for (_, done), answer in zip(writes, answers[len(drafts) :], strict=True):
                _resolve(done, answer)

    def _pending_notes(self) -> list[Note]:
        with self._guard:
            return [
                Note(*key, progress_note.stage, progress_note.progress, progress_note.message)
                for key, progress_note in self.pending.items()
            ]

    def _sent(self, notes: list[Note]) -> None:
        with self._guard:
            for note in notes:
                key = (note.job_id, note.token)
                progress_note = self.pending.get(key)
                if progress_note is not None and note == Note(
                    *key, progress_note.stage, progress_note.progress, progress_note.message
                ):
                    del self.pending[key]  # nothing newer was said meanwhile

    async def _send(self, notes: list[Note]) -> list[bool | Exception]:
        """For each note: written, refused, or the error that it alone is to blame for."""
        newest: dict[str, int] = {}
        for note in notes:
            newest[note.job_id] = max(note.token, newest.get(note.job_id, 0))
        current = [note for note in notes if note.token == newest[note.job_id]]
        if len(current) < len(notes):
            answers = iter(await self._send(current))
            return [note.token == newest[note.job_id] and next(answers) for note in notes]
        try:
            self.telemetry.notes += len(notes)
            refused = await self.engine.note(notes)
        except EngineUnavailable:
            raise
        except Exception as error:
            if len(notes) == 1:
                log.exception("The note of job %s cannot be written", notes[0].job_id)
                return [error]
            # One bad note must not take the others with it.
            return [answer for note in notes for answer in await self._send([note])]
        return [note.job_id not in refused for note in notes]

    def _arm(self) -> None:
        self._loop.call_later(PAUSE, self._on_timer)

    def _on_timer(self) -> None:
        with self._guard:
            self._armed = False
        if self.pending:
            self._due = True
            self.wake()


def _resolve(done: asyncio.Future[bool], answer: bool | Exception) -> None:
    if done.done():
        return  # nobody waits any more
    if isinstance(answer, Exception):
        done.set_exception(answer)
    else:
        done.set_result(answer)
