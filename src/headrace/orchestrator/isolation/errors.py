"""Errors of child processes.

HeadraceError
├── ChildDied            the process ended before the handler did; the attempt failed
│   └── ChildNotStarted  before the handler began
├── ForkedCopy           a forked copy of the child used the job's context
└── NotRetryable
    └── MessageTooLong   a message is longer than the other side accepts
RemoteError              in the worker, stands for an error that the handler raised in its child
"""

from __future__ import annotations

import signal

from headrace.errors import HeadraceError, NotRetryable


class ChildDied(HeadraceError):
    """The child process of a job ended before the handler did."""


class ChildNotStarted(ChildDied):
    """The child process ended before the handler began, so another child may be tried."""


class ForkedCopy(HeadraceError):
    """A process that a handler forked used the context of the job."""


class MessageTooLong(NotRetryable):
    """A message is so long that it could fill the other side's memory. It was not sent."""


class RemoteError(Exception):
    """An error that a handler raised in its child process.

    Its class has the name and the ancestry of the original; `remote_traceback` is the original's.
    """

    remote_traceback: str = ""
    remote_message: str = ""

    def __str__(self) -> str:
        return self.remote_message


class RemoteTraceback(Exception):
    """The cause of a rebuilt error, so that any formatter shows the child's own traceback."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def describe_exit(exit_code: int | None) -> str:
    """Return in words how a child process ended."""
    if exit_code is None:
        return "closed its channel to the worker"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
