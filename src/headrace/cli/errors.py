"""From an error to one clear line on stderr and an exit code.

    0  done
    1  the thing failed, or was not found
    2  bad input: nothing was changed
    3  the engine is not available

130 after Ctrl-C, 141 when whoever read the output went away.
"""

from __future__ import annotations

import os
import sys
import traceback

import typer

from headrace.cli.formatting import clean
from headrace.errors import EngineError, HeadraceError, InvalidInput, WorkerUnhealthy

OK = 0
FAILED = 1
USAGE = 2
UNAVAILABLE = 3
INTERRUPTED = 130
PIPE_CLOSED = 141


def tell(message: str) -> None:
    """Say something that is not the answer itself: a note, a warning, an error."""
    print(clean(" ".join(message.split())), file=sys.stderr, flush=True)


def report(error: BaseException, *, debug: bool = False) -> int:
    """Tell an error in one line and answer the exit code; the traceback only if asked for."""
    if debug:
        traceback.print_exception(error)
    match error:
        case typer.TyperException() if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
            return USAGE
        case typer.TyperException():
            tell(f"error: {_usage(error)}")
            return USAGE
        case typer.Abort():
            tell("error: aborted; nothing was changed")
            return FAILED
        case KeyboardInterrupt():
            return INTERRUPTED
        case HeadraceError():
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            tell(f"error: {error}{notes}")
            return _code(error)
        case _:
            hint = "" if debug else "; run it again with --debug for the traceback"
            tell(f"error: unexpected {type(error).__name__}: {error}{hint}")
            return FAILED


def hush() -> int:
    """Whoever read our output has gone (`| head`): stop without a word."""
    # The interpreter flushes stdout once more at exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def _code(error: HeadraceError) -> int:
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, (EngineError, WorkerUnhealthy)):
        return UNAVAILABLE
    return FAILED


def _usage(error: typer.TyperException) -> str:
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text}; see: {context.command_path} --help"
