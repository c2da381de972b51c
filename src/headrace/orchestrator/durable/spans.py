"""What spans tell of errors: the same as log lines, without arguments and what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.errors import Snooze
from headrace.model.outcome import Failure
from headrace.model.sealed import SEALED_ERROR, TEXT
from headrace.orchestrator.settling.attempt_log import describe_failure
from headrace.task.redact import Redactor

if TYPE_CHECKING:
    from headrace.orchestrator.durable.context import DurableContext
    from headrace.tracing.tracer import Tracing

# The fields that a server hides unless it is told others.
_redactor = Redactor()


@contextmanager
def stage_span(tracing: Tracing, context: DurableContext, name: str) -> Iterator[None]:
    """Make the span of a stage, in which its function runs."""

    def describe(error: Exception) -> Failure | None:
        if isinstance(error, Snooze):
            return None
        failure = describe_failure(error)
        if context.sealed:
            return Failure(failure.type, SEALED_ERROR)
        return hidden(failure, context.args_json)

    with tracing.stage(name, describe):
        yield


def hidden(failure: Failure, args: bytes) -> Failure:
    """Return a failure without the values that are hidden in these arguments. That they do not fit
    is told without them.
    """
    if failure.message.startswith(TEXT):
        return Failure(failure.type, SEALED_ERROR)
    if failure.type == "InvalidArguments":
        return Failure(failure.type, failure.message.partition("; got ")[0])
    secrets = _redactor.secrets(args)
    if not secrets:
        return failure
    message = _redactor.text(failure.message, args)
    trace = failure.traceback
    return Failure(failure.type, message, None if trace is None else _redactor.text(trace, args))
