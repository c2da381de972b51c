"""What an App seals and opens: the values of its jobs, each bound to the job that it belongs to."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from headrace.encryption.cipher import Binding, load_cipher, seal, unseal
from headrace.encryption.keys import Keys
from headrace.errors import MissingEncryptionKey, SealRefused
from headrace.model.job import NewJob
from headrace.model.outcome import Failed, Failure, Outcome, Retry, TimedOut
from headrace.model.sealed import (
    read_document,
    read_run,
    read_text,
    shown_text,
    write_document,
    write_run,
    write_text,
)


class Sealing:
    """Seals with the first key, and opens with any. Keys are asked for once, when the first value
    is sealed or opened. May be used from any thread.
    """

    def __init__(self, make: Callable[[], Keys]) -> None:
        self._make = make
        self._made: Keys | None = None
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return "<Sealing>"

    @property
    def keys(self) -> Keys:
        """Return the keys. Raises `InvalidSetting` if they cannot be used."""
        made = self._made
        if made is None:
            with self._guard:
                if self._made is None:
                    load_cipher()
                    self._made = self._make()
                made = self._made
        return made

    # -- documents and texts -------------------------------------------------------------------

    def document(self, binding: Binding, plain: bytes) -> bytes:
        """Return JSON, sealed: a JSON object again."""
        return write_document(seal(self.keys, binding, plain))

    def open_document(self, binding: Binding, document: bytes) -> bytes:
        """Return the JSON that was sealed; what is not sealed as it is."""
        sealed = read_document(document)
        return document if sealed is None else unseal(self.keys, binding, sealed)

    def text(self, binding: Binding, plain: bytes) -> str:
        """Return bytes as sealed text."""
        return write_text(seal(self.keys, binding, plain))

    def open_text(self, binding: Binding, text: str) -> bytes:
        """Return the bytes that were sealed as text."""
        sealed = read_text(text)
        if sealed is None:
            raise SealRefused(f"{binding.kind} {binding.name!r} of {binding.owner} is not sealed")
        return unseal(self.keys, binding, sealed)

    # -- the arguments of a job ----------------------------------------------------------------

    def args(self, job_id: str, plain: bytes) -> bytes:
        """Return the arguments of a job, sealed."""
        return self.document(Binding("arguments", job_id), plain)

    def run_args(self, job_id: str, params: bytes, workflow: bytes) -> bytes:
        """Return the arguments of a run: its parameters are sealed, its workflow is not."""
        return write_run(self.document(Binding("parameters", job_id), params), workflow)

    def open_args(self, job_id: str, args: bytes) -> bytes:
        """Return the arguments of a job, whether they are sealed or not."""
        run = read_run(args)
        if run is None:
            return self.open_document(Binding("arguments", job_id), args)
        params = self.open_document(Binding("parameters", job_id), run[0])
        return write_run(params, run[1])

    def with_id(self, job: NewJob, job_id: str) -> NewJob:
        """Return a job under another id. Its sealed arguments belong to that one from then on."""
        run = read_run(job.args)
        plain = self.open_args(job.id, job.args)
        if run is None:
            args = self.args(job_id, plain)
        else:
            params = msgspec.json.decode(plain, type=dict[str, msgspec.Raw])["params"]
            args = self.run_args(job_id, bytes(params), run[1])
        return msgspec.structs.replace(job, id=job_id, args=args)

    # -- results, stages, events ---------------------------------------------------------------

    def result(self, job_id: str, plain: bytes) -> bytes:
        """Return the result of a job, sealed."""
        return self.document(Binding("result", job_id), plain)

    def open_result(self, job_id: str, result: bytes) -> bytes:
        """Return the result of a job, whether it is sealed or not."""
        return self.open_document(Binding("result", job_id), result)

    def event(self, job_id: str, name: str, plain: bytes) -> bytes:
        """Return the value of an event of a job, sealed."""
        return self.document(Binding("event", job_id, name), plain)

    def open_event(self, job_id: str, name: str, body: bytes) -> bytes:
        """Return the value of an event of a job, whether it is sealed or not."""
        return self.open_document(Binding("event", job_id, name), body)

    def stage(self, job_id: str, name: str, plain: bytes) -> str:
        """Return the value of a stage, sealed."""
        return self.text(Binding("stage", job_id, name), plain)

    def open_stage(self, job_id: str, name: str, sealed: str) -> bytes:
        """Return the value of a stage."""
        return self.open_text(Binding("stage", job_id, name), sealed)

    def file(self, job_id: str, name: str, plain: bytes) -> bytes:
        """Return a large value that is kept in a file, sealed."""
        return self.document(Binding("file", job_id, name), plain)

    def open_file(self, job_id: str, name: str, content: bytes) -> bytes:
        """Return a large value that was kept in a file, whether it is sealed or not."""
        return self.open_document(Binding("file", job_id, name), content)

    # -- records -------------------------------------------------------------------------------

    def params(self, schedule: str, plain: bytes) -> bytes:
        """Return the arguments of a schedule, sealed."""
        return self.document(Binding("params", schedule), plain)

    def open_params(self, schedule: str, params: bytes) -> bytes:
        """Return the arguments of a schedule, whether they are sealed or not."""
        return self.open_document(Binding("params", schedule), params)

    def message(self, letter: str, plain: bytes) -> bytes:
        """Return the message of a dead letter, sealed."""
        return self.document(Binding("message", letter), plain)

    def open_message(self, letter: str, message: bytes) -> bytes:
        """Return the message of a dead letter, whether it is sealed or not."""
        return self.open_document(Binding("message", letter), message)

    # -- errors --------------------------------------------------------------------------------

    def failure(self, job_id: str, failure: Failure) -> Failure:
        """Return a failure with its texts sealed. Its type stays plain."""
        trace = failure.traceback
        return Failure(
            failure.type,
            self.text(Binding("error", job_id), failure.message.encode()),
            None if trace is None else self.text(Binding("traceback", job_id), trace.encode()),
        )

    def open_failure(self, job_id: str, failure: Failure) -> Failure:
        """Return a failure as it was. What cannot be opened is told to be sealed."""
        return Failure(
            failure.type,
            self._opened(Binding("error", job_id), failure.message),
            failure.traceback and self._opened(Binding("traceback", job_id), failure.traceback),
        )

    def _opened(self, binding: Binding, text: str) -> str:
        if read_text(text) is None:
            return text
        try:
            return self.open_text(binding, text).decode("utf-8", "replace")
        except (MissingEncryptionKey, SealRefused):
            return shown_text(text)

    def outcome(self, job_id: str, outcome: Outcome) -> Outcome:
        """Return an outcome whose failure is sealed, if it has one."""
        if isinstance(outcome, Retry | Failed | TimedOut):
            failure = self.failure(job_id, outcome.failure)
            return msgspec.structs.replace(outcome, failure=failure)
        return outcome
