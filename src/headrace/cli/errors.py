"""From an error to one clear line on stderr and an exit code.

    0  done
    1  the thing failed, or was not found
    2  bad input: nothing was changed
    3  the engine is not available

130 after Ctrl-C, 141 when the reader of the output went away (`| head`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback

import click

from headrace.cli.columns import hanging
from headrace.cli.formatting import clean
from headrace.errors import EngineError, HeadraceError, InvalidInput, WorkerUnhealthy

OK = 0
FAILED = 1
USAGE = 2
UNAVAILABLE = 3
INTERRUPTED = 130
PIPE_CLOSED = 141


def notice(message: str) -> None:
    """Write a note, a warning or an error to stderr, on one line; a terminal that is narrower gets
    several.
    """
    text = clean(" ".join(message.split()))
    if sys.stderr.isatty():
        with contextlib.suppress(OSError):  # no size, as in some editors
            text = hanging(text, os.get_terminal_size(sys.stderr.fileno()).columns or 80)
    print(text, file=sys.stderr, flush=True)


def report(error: BaseException, *, debug: bool = False) -> int:
    """Write an error in one line and return the exit code; the traceback only if asked for."""
    if debug:
        traceback.print_exception(error)
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return USAGE
        case click.ClickException():
            notice(f"error: {_usage(error)}")
            return USAGE
        # As click tells of Ctrl-C, except at a question.
        case KeyboardInterrupt() | click.Abort(__cause__=KeyboardInterrupt()):
            return INTERRUPTED
        case click.Abort():
            notice("error: aborted; nothing was changed")
            return FAILED
        case HeadraceError():
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            notice(f"error: {error}{notes}")
            return _code(error)
        case _:
            hint = "" if debug else "; run it again with --debug for the traceback"
            notice(f"error: unexpected {type(error).__name__}: {error}{hint}")
            return FAILED


def exit_on_closed_pipe() -> int:
    """Return the exit code for when the reader of our output has gone (`| head`)."""
    # The interpreter flushes stdout once more at exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _code(error: HeadraceError) -> int:
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, (EngineError, WorkerUnhealthy)):
        return UNAVAILABLE
    return FAILED


def _usage(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}{' See' if text.endswith('?') else '; see'}: {context.command_path} --help"
