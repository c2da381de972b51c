"""What can go wrong with a child process, as the worker sees it.

HeadraceError
├── ChildDied           the process ended without an answer; the attempt failed
│   └── ChildNotStarted before the handler began
├── ForkedCopy          a copy of the child used what belongs to the child
└── NotRetryable
    ├── MessageTooLong  more was to be sent at once than the line takes
    └── PayloadTooLarge the result is beyond the limit, as it would be another time
RemoteError             the handler raised in its child; stands in for that error here
"""

from __future__ import annotations

import signal

from headrace import errors
from headrace.errors import HeadraceError, NotRetryable


class ChildDied(HeadraceError):
    """The child process of a job ended before the handler did."""


class ChildNotStarted(ChildDied):
    """The child process ended before the handler began, so another child may be tried."""


class ForkedCopy(HeadraceError):
    """A process that a handler forked used the job's context, which only the job's own may."""


class MessageTooLong(NotRetryable):
    """Worker and child send each other no message that would fill the other's memory."""


class PayloadTooLarge(errors.PayloadTooLarge, NotRetryable):
    """The result exceeds the limit, and was not sent. It would be the same another time."""


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


def obituary(exit_code: int | None) -> str:
    """How a child process ended, in words."""
    if exit_code is None:
        return "closed its line to the worker"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"
