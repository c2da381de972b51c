"""The program of a child process: `python -m headrace.orchestrator.isolation.child`."""

from __future__ import annotations

import os
import socket
import sys

from headrace.orchestrator.isolation.child.channel import Link
from headrace.orchestrator.isolation.child.main import serve
from headrace.orchestrator.isolation.child.resource_limits import protect


def main() -> None:
    """Serve the worker at the other end of a socket that was inherited."""
    line, marks, parent = map(int, sys.argv[1:4])
    # Programs that a handler starts must not hold the line open.
    os.set_inheritable(line, False)
    os.set_inheritable(marks, False)
    protect(parent)
    serve(Link(socket.socket(fileno=line), marks))


if __name__ == "__main__":
    main()
