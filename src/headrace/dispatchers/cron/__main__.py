"""`python -m headrace.dispatchers.cron`, the same as `headrace dispatcher cron`."""

from __future__ import annotations

import sys
from importlib import import_module

if __name__ == "__main__":
    # The program is the command line's. It is named by text because imports only point down.
    import_module("headrace.cli.main").main(["dispatcher", "cron", *sys.argv[1:]])
