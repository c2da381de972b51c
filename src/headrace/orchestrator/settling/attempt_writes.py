"""Writes of running attempts: progress in batches, stages at once, all guarded by the token."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from itertools import compress

import msgspec

from headrace.engine.base import Engine
from headrace.errors import EngineUnavailable, StoreUnavailable
from headrace.loops.loop import Loop
from headrace.model.durable.writes import Entry, Note
from headrace.model.job import ClaimedJob
from headrace.telemetry import Telemetry

log = logging.getLogger("headrace.notes")

PAUSE = 0.2
# What one of several stores could not be told is sent again after so long.
PAUSE_FOR_STORE = 1.0
BATCH = 200

# A job and its token: one attempt.
Key = tuple[str, int]
Result = bool | Exception | None
_Write = tuple[Note, asyncio.Future[bool]]


class PendingProgress(msgspec.Struct, eq=False):
    """The latest progress of one attempt that is not written yet. None leaves a field as it is."""

    stage: str | None = None
    progress: float | None = None
    message: str | None = None
    entries: tuple[Entry, ...] = ()

    def note(self, key: Key) -> Note:
        """Return it as it is sent."""
        return Note(*key, self.stage, self.progress, self.message, self.entries)


class AttemptWriter(Loop):
    """Sends the latest progress of each attempt, and every durable write.

    The engine checks a note by its token and returns the jobs of those that it refuses. An attempt
    that was abandoned may go on reporting in its thread while the next one runs here, so no call
    has notes of two attempts at one job: a refusal would count for both. Tokens grow, so the
    earlier attempt is refused without a call.
    """

    name = "attempt writer"

    def __init__(
        self, *, engine: Engine, telemetry: Telemetry, on_refused: Callable[[str, int], None]
    ) -> None:
        super().__init__()
        self.engine = engine
        self.telemetry = telemetry
        # Progress stays here until it has been written, also while it is in flight.
        self.pending: dict[Key, PendingProgress] = {}
        # A job with pending progress has finished: write that before its outcome is settled.
        self.flush_before_settle = False
        self._writes: list[_Write] = []
        self._on_refused = on_refused
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._guard = threading.Lock()
        # A timer runs; when it fires, pending progress is due.
        self._armed = False
        self._due = False

    def progress(
        self,
        job: ClaimedJob,
        *,
        stage: str | None = None,
        progress: float | None = None,
        message: str | None = None,
        entry: Entry | None = None,
    ) -> None:
        """Remember the latest progress, and an entry that no later attempt depends on. May be
        called from any thread; makes no call.
        """
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
            if entry is not None:
                progress_note.entries += (entry,)
            if self._armed:
                return
            self._armed = True
        self._loop.call_soon_threadsafe(self._arm)

    async def write(
        self, job: ClaimedJob, *, stage: str | None, progress: float | None, entry: Entry | None
    ) -> bool:
        """Write durably, batched with the writes of other attempts. Return False if it was refused
        because the lease is lost.

        The write carries the attempt's pending progress along, for example the start of its stage.
        Waits while the engine is unavailable: work that is done is worth more than a retry.
        """
        message: str | None = None
        entries: tuple[Entry, ...] = ()
        progress_note = self._take(job)
        if progress_note is not None:
            stage = progress_note.stage if stage is None else stage
            progress = progress_note.progress if progress is None else progress
            message = progress_note.message
            entries = progress_note.entries
        if entry is not None:
            entries += (entry,)
        note = Note(job.id, job.token, stage, progress, message, entries)
        done: asyncio.Future[bool] = self._loop.create_future()
        self._writes.append((note, done))
        self.wake()
        return await done

    def discard(self, job: ClaimedJob) -> None:
        """Drop the pending progress of a lost attempt."""
        self._take(job)

    def _take(self, job: ClaimedJob) -> PendingProgress | None:
        key = (job.id, job.token)
        if key not in self.pending:
            return None
        with self._guard:
            return self.pending.pop(key, None)

    async def tick(self) -> None:
        await self.flush()
        if self._writes:
            self.wake()

    async def flush(self) -> None:
        """Send everything that waits. Returns when that, and what was in flight, has arrived."""
        async with self._sending:
            # A write does not carry the progress of other attempts: that is sent now and then.
            drafts = self._pending_notes() if self._due or self.flush_before_settle else []
            self._due = self.flush_before_settle = False
            writes, self._writes = self._writes[:BATCH], self._writes[BATCH:]
            # An attempt's progress goes before its write: it is older.
            notes = [*drafts, *(note for note, _ in writes)]
            if not notes:
                return
            try:
                results = await self._send(notes)
            except BaseException:
                self._writes[:0] = writes
                self.flush_before_settle = True
                raise
            if None in results:
                drafts, writes, results = self._keep_back(drafts, writes, results)
            self._sent(drafts)
            # A refused write raises in the attempt that waits for it; other attempts are stopped.
            writing = {(note.job_id, note.token) for note, _ in writes}
            for progress_note, result in zip(drafts, results[: len(drafts)], strict=True):
                if result is False and (progress_note.job_id, progress_note.token) not in writing:
                    self._on_refused(progress_note.job_id, progress_note.token)
            for (_, done), result in zip(writes, results[len(drafts) :], strict=True):
                _resolve(done, result)

    def _keep_back(
        self, drafts: list[Note], writes: list[_Write], results: list[Result]
    ) -> tuple[list[Note], list[_Write], list[Result]]:
        """Return what was sent: the rest is for a store that does not answer, while others do."""
        told = [each is not None for each in results]
        kept = [each for each, sent in zip(writes, told[len(drafts) :], strict=True) if not sent]
        self._loop.call_later(PAUSE_FOR_STORE, self._send_again, kept)
        return (
            list(compress(drafts, told)),
            list(compress(writes, told[len(drafts) :])),
            list(compress(results, told)),
        )

    def _send_again(self, kept: list[_Write]) -> None:
        self._writes[:0] = kept
        self._due = True
        self.wake()

    def _pending_notes(self) -> list[Note]:
        with self._guard:
            return [progress_note.note(key) for key, progress_note in self.pending.items()]

    def _sent(self, notes: list[Note]) -> None:
        with self._guard:
            for note in notes:
                key = (note.job_id, note.token)
                progress_note = self.pending.get(key)
                if progress_note is not None and note == progress_note.note(key):
                    del self.pending[key]  # nothing newer was reported meanwhile

    async def _send(self, notes: list[Note]) -> list[Result]:
        """Return for each note whether it was written, or the error that it alone has caused; None
        if its store does not answer, but others do.
        """
        newest: dict[str, int] = {}
        for note in notes:
            newest[note.job_id] = max(note.token, newest.get(note.job_id, 0))
        current = [note for note in notes if note.token == newest[note.job_id]]
        if len(current) < len(notes):
            results = iter(await self._send(current))
            return [note.token == newest[note.job_id] and next(results) for note in notes]
        try:
            self.telemetry.notes += len(notes)
            refused = await self.engine.write_progress(notes)
        except EngineUnavailable as error:
            if not isinstance(error, StoreUnavailable) or not error.left:
                raise
            return [
                None if note.job_id in error.left else note.job_id not in error.refused
                for note in notes
            ]
        except Exception as error:
            if len(notes) == 1:
                log.exception("The note of job %s cannot be written", notes[0].job_id)
                return [error]
            # One bad note must not fail the others.
            return [result for note in notes for result in await self._send([note])]
        return [note.job_id not in refused for note in notes]

    def _arm(self) -> None:
        self._loop.call_later(PAUSE, self._on_timer)

    def _on_timer(self) -> None:
        with self._guard:
            self._armed = False
        if self.pending:
            self._due = True
            self.wake()


def _resolve(done: asyncio.Future[bool], result: Result) -> None:
    if done.done():
        return  # the attempt was cancelled
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(bool(result))
