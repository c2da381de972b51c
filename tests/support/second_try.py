"""Run the few tests that have failed in a whole run once more, by themselves.

`python -m tests.support.second_try` is what `make test` does after a failure. Of more than eleven
thousand tests with real servers, programs and browsers on a busy machine one may fail that does not
otherwise. What passes alone is listed as unsteady, below the report of its failure: it has a race,
in the test or in the program, that somebody has to find. More than `MOST` are no accident.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 2


def main() -> int:
    """Return 0 if all that had failed pass now."""
    path = Path(".pytest_cache/v/cache/lastfailed")
    failed = sorted(json.loads(path.read_text())) if path.exists() else []
    if not 0 < len(failed) <= MOST:
        return 1
    print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
    if code := subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode:
        return code
    print(
        "\nUNSTEADY: failed among the others and passed alone. Find the race:", *failed, sep="\n  "
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
