"""Print all figures: `python -m headrace_spots.accuracy FOLDER`.

FOLDER has reviews.jsonl. Sentences with labelled aspects are in the tests of this bundle.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace_spots.accuracy import aspects, sentiment


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_spots.accuracy")
    parser.add_argument("folder", type=Path, help="folder with reviews.jsonl")
    parser.add_argument("--aspects", type=Path, default=aspects.SET, help="labelled sentences")
    parser.add_argument("--only", choices=["sentiment", "aspects"])
    chosen = parser.parse_args(arguments)
    if chosen.only != "aspects":
        path = chosen.folder / "reviews.jsonl"
        if not path.is_file():
            parser.error(f"{path} is not there; give the folder that has it")
        sentiment.measure(chosen.folder, sys.stdout)
    if chosen.only != "sentiment":
        if not chosen.aspects.is_file():
            parser.error(f"{chosen.aspects} is not there; give the labelled sentences by --aspects")
        print()
        aspects.measure(chosen.aspects, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
