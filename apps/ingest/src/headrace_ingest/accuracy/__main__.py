"""Run one of the measurements: `python -m headrace_ingest.accuracy masking`, `names`, `search` or
`similar`.
"""

from __future__ import annotations

import sys

from headrace_ingest.accuracy import masking, search


def main(arguments: list[str]) -> int:
    """Run a measurement; return the exit code."""
    if arguments and arguments[0] in masking.MEASUREMENTS:
        return masking.main(arguments)
    if arguments and arguments[0] in search.MEASUREMENTS:
        return search.main(arguments)
    names = (*masking.MEASUREMENTS, *search.MEASUREMENTS)
    print(f"usage: python -m headrace_ingest.accuracy {{{','.join(names)}}} …", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
