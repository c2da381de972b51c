"""Sealed values: how they look where they are stored. Neither keys nor ciphers are known here.

    {"$sealed":{"key":"k2","data":"…"}}             a document: arguments, a result, an event
    {"params":{"$sealed":{…}},"workflow":{…}}       the arguments of a run of a workflow
    $sealed:k2:…                                    a text: a stage's value, an error

The name of the key is plain, so that everybody sees what is needed to open a value.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from headrace.errors import MissingEncryptionKey
from headrace.model.outcome import AttemptEntry, Failed, Failure, Outcome, Retry, TimedOut

DOCUMENT = b'{"$sealed":'
RUN = b'{"params":{"$sealed":'
TEXT = "$sealed:"
# What all of these have in them.
MARK = b"$sealed"
# All that an engine is told about the error of an encrypted job, beside its type.
SEALED_ERROR = "the text of this error is sealed"


class Sealed(NamedTuple):
    """A sealed value: the name of its key, and what the key opens, in base64."""

    key: str
    data: str


class _Inner(msgspec.Struct, frozen=True):
    key: str
    data: str = ""
    # Where the data is left out, in views.
    bytes: int | None = None


class _Envelope(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"sealed": "$sealed"}
):
    sealed: _Inner


class _RunArguments(msgspec.Struct):
    # In this order: that is how they are recognised.
    params: msgspec.Raw
    workflow: msgspec.Raw


_decoder = msgspec.json.Decoder(_Envelope)
_run_decoder = msgspec.json.Decoder(_RunArguments)
_entry_decoder = msgspec.json.Decoder(AttemptEntry)


class Opener(Protocol):
    """Opens sealed values, with the keys of this process."""

    def open_args(self, job_id: str, args: bytes) -> bytes:
        """Return the arguments of a job."""

    def open_result(self, job_id: str, result: bytes) -> bytes:
        """Return the result of a job."""

    def open_stage(self, job_id: str, name: str, sealed: str) -> bytes:
        """Return the value of a stage."""

    def open_failure(self, job_id: str, failure: Failure) -> Failure:
        """Return a failure as it was. What cannot be opened is told to be sealed."""


def no_keys(job_id: str, what: str, key: str | None) -> MissingEncryptionKey:
    """Return the error of one who asks for a sealed value without any keys."""
    return MissingEncryptionKey(
        f'job {job_id}: its {what} {"are" if what.endswith("s") else "is"} sealed with key "{key}"'
        ", and there are no encryption keys here; ask for it by an App that has them "
        "(HEADRACE_ENCRYPTION_KEYS)",
        key=key,
    )


def write_document(sealed: Sealed) -> bytes:
    """Return a sealed value as a JSON object."""
    return b'{"$sealed":{"key":%b,"data":"%b"}}' % (
        msgspec.json.encode(sealed.key),
        sealed.data.encode(),
    )


def is_sealed(document: bytes | None) -> bool:
    """Return whether a document looks like a sealed value. Cheap."""
    return document is not None and document.startswith(DOCUMENT)


def read_document(document: bytes) -> Sealed | None:
    """Return the sealed value that a document is; None if it is none."""
    if not document.startswith(DOCUMENT):
        return None
    try:
        inner = _decoder.decode(document).sealed
    except msgspec.DecodeError:
        return None
    return Sealed(inner.key, inner.data)


def write_text(sealed: Sealed) -> str:
    """Return a sealed value as text."""
    return f"{TEXT}{sealed.key}:{sealed.data}"


def read_text(text: str) -> Sealed | None:
    """Return the sealed value that a text is; None if it is none."""
    if not text.startswith(TEXT):
        return None
    key, colon, data = text.removeprefix(TEXT).partition(":")
    return Sealed(key, data) if colon else None


# -- the arguments of a job ------------------------------------------------------------------------


def write_run(params: bytes, workflow: bytes) -> bytes:
    """Return the arguments of a run, with sealed parameters."""
    return msgspec.json.encode(_RunArguments(msgspec.Raw(params), msgspec.Raw(workflow)))


def read_run(args: bytes) -> tuple[bytes, bytes] | None:
    """Return the sealed parameters of a run and its workflow; None if they are not sealed."""
    if not args.startswith(RUN):
        return None
    try:
        found = _run_decoder.decode(args)
    except msgspec.DecodeError:
        return None
    return bytes(found.params), bytes(found.workflow)


def key_of_args(args: bytes) -> str | None:
    """Return the name of the key that arguments are sealed with; None if they are not sealed."""
    if not args.startswith((DOCUMENT, RUN)):
        return None
    run = read_run(args)
    found = read_document(args if run is None else run[0])
    return None if found is None else found.key


# -- errors ----------------------------------------------------------------------------------------


def without_text(outcome: Outcome) -> Outcome:
    """Return an outcome of an encrypted job as anybody may see it: its error without the text,
    which is sealed in the attempt log. What Headrace says itself is not sealed, and stays.
    """
    if isinstance(outcome, Retry | Failed | TimedOut) and outcome.failure.message.startswith(TEXT):
        return msgspec.structs.replace(outcome, failure=Failure(outcome.failure.type, SEALED_ERROR))
    return outcome


# -- views -----------------------------------------------------------------------------------------


def shown_document(document: bytes) -> bytes:
    """Return a document as people see it: of a sealed one only its key and its size."""
    if not document.startswith((DOCUMENT, RUN)):
        return document
    run = read_run(document)
    if run is not None:
        return write_run(shown_document(run[0]), run[1])
    found = read_document(document)
    if found is None:
        return document
    size = len(found.data) * 3 // 4
    if not found.data:  # it is a view already
        return document
    return b'{"$sealed":{"key":%b,"bytes":%d}}' % (msgspec.json.encode(found.key), size)


def shown_text(text: str) -> str:
    """Return a text as people see it."""
    found = read_text(text)
    return text if found is None else f"sealed with key {found.key}"


def shown_failure(failure: Failure) -> Failure:
    """Return a failure as people see it."""
    trace = failure.traceback
    return Failure(failure.type, shown_text(failure.message), trace and shown_text(trace))


def read_attempts(job_id: str, log: bytes, opener: Opener | None) -> list[AttemptEntry]:
    """Return the entries of an attempt log. Sealed errors are opened, or without an opener told to
    be sealed.
    """
    entries = []
    for line in log.splitlines():
        try:
            entry = _entry_decoder.decode(line)
        except msgspec.DecodeError:
            continue  # the log is bounded from the front, so its first line may be cut
        failure = entry.failure
        if failure is not None and failure.message.startswith(TEXT):
            failure = (
                shown_failure(failure) if opener is None else opener.open_failure(job_id, failure)
            )
            entry = msgspec.structs.replace(entry, failure=failure)
        entries.append(entry)
    return entries
