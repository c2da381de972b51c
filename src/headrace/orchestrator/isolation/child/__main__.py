"""The program of a child process: `python -m headrace.orchestrator.isolation.child`."""

from __future__ import annotations

import os
import socket
import sys

from headrace.orchestrator.isolation.child.channel import ChildChannel
from headrace.orchestrator.isolation.child.main import serve
from headrace.orchestrator.isolation.child.resource_limits import protect


def main() -> None:
    """Serve the worker at the other end of a socket that was inherited."""
    line, begun_marks, parent = map(int, sys.argv[1:4])
    # Programs that a handler starts must not hold the line open.
    os.set_inheritable(line, False)
    os.set_inheritable(begun_marks, False)
    protect(parent)
    serve(ChildChannel(socket.socket(fileno=line), begun_marks))


if __name__ == "__main__":
    main()
