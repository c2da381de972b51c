"""Taking jobs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headrace.engine.redis.codec import insert_arguments
from headrace.engine.redis.connection.connection import Part, pack, pack_beginning, pack_rest
from headrace.engine.redis.connection.errors import ScriptUnknown
from headrace.engine.redis.connection.store import RedisStore, call_of
from headrace.engine.redis.records import conflict, guard
from headrace.engine.redis.scripts import script
from headrace.model.insert_policy import InsertPolicy, replaced_by
from headrace.model.job import Inserted, NewJob, PolicyInserted
from headrace.model.views import RecordChange

# In one go the server writes first to whom it had something to say last. With an answer in front
# of ours, that is the worker that is handed the job, and not the caller.
_SPEAK_LAST = pack(("PING",))
_ONE = "insert_one"
# There is more to do before a job can be stored by its policy.
_MORE = b"+"


class Producing(RedisStore):
    """See `headrace.engine.base.Producing`."""

    # All of the call that stores one job but the job.
    _alone: bytes | None = None

    async def insert(
        self, jobs: Sequence[NewJob], *, record: RecordChange | None = None, wait: bool = True
    ) -> list[Inserted]:
        if not jobs and record is None:
            return []
        arguments, verb = insert_arguments(jobs)
        if record is not None:
            answers = await self._insert_with(record, verb or "insert_related", arguments)
        elif verb:
            answers = await self.run(verb, "", "", "", *arguments)
        elif len(jobs) == 1 and _may_run_at_once(jobs[0]):
            answers = await self._insert_one(arguments)
        else:
            answers = await self.run("insert", *arguments)
        return [_inserted(answer) for answer in answers]

    async def insert_by_policy(self, job: NewJob) -> PolicyInserted:
        policy = job.policy or InsertPolicy()
        arguments, _ = insert_arguments([job])
        found: list[bytes] = []
        answer = _MORE
        while answer == _MORE:
            answer, *others = await self.run(
                "insert_by_policy",
                policy.on_duplicate,
                _seconds(policy.window),
                _seconds(policy.max_wait),
                policy.when_full,
                replaced_by(job.id),
                *arguments,
            )
            found += others
        return PolicyInserted(
            _inserted(answer) if answer else None,
            cancelled=tuple(each[1:].decode() for each in found if each[:1] == b"1"),
            stopping=tuple(each[1:].decode() for each in found if each[:1] == b"0"),
        )

    async def _insert_one(self, arguments: list[Part]) -> list[bytes]:
        """Somebody may be waiting for this very job, so every step less is worth it."""
        if self._alone is None:
            call = call_of(script(_ONE), self.address)
            self._alone = _SPEAK_LAST + pack_beginning(call, 1 + len(arguments))
        command = self._alone + pack_rest((self.offset, *arguments))
        try:
            return cast(list[bytes], await self._link.call_packed(command, unheard=1))
        except ScriptUnknown:
            call = call_of(script(_ONE), self.address)
            answers = self._link.call_with(script(_ONE).source, *call, self.offset, *arguments)
            return cast(list[bytes], await answers)

    async def _insert_with(
        self, record: RecordChange, verb: str, arguments: list[Part]
    ) -> list[bytes]:
        field, version = f"{record.kind}\0{record.key}", guard(record.version)
        answer = await self.run(verb, field, record.body, version, *arguments)
        if isinstance(answer, int):
            raise conflict(record.kind, record.key, record.version, answer)
        return cast(list[bytes], answer)


def _may_run_at_once(job: NewJob) -> bool:
    """Whether a job waits for nothing, neither for a time nor for others."""
    return job.lane is None and job.run_at is None and not job.delay > 0


def _inserted(answer: bytes) -> Inserted:
    if answer[:1] == b"=":
        return Inserted(answer[1:].decode(), False)
    return Inserted(answer.decode(), True)


def _seconds(value: float | None) -> str:
    return "" if value is None else repr(float(value))
