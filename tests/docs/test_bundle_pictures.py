"""The pictures of bundles: those that their README shows, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

APPS = Path(__file__).parents[2] / "apps"
READMES = sorted(APPS.glob("*/README.md"))
PICTURE = re.compile(r"!\[([^\]]*)\]\((pictures/[^)]+)\)")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_a_readme_shows_each_picture_that_its_bundle_makes(readme: Path) -> None:
    """Stored, shown and made are the same, and each is described."""
    folder = readme.parent
    shown = {path: words for words, path in PICTURE.findall(readme.read_text("utf-8"))}
    stored = {f"pictures/{path.name}" for path in folder.glob("pictures/*")}
    assert stored == set(shown) == {f"pictures/{name}.png" for name in made_by(folder)}
    assert all(shown.values()), "each has words for those who do not see it"


def test_there_are_bundles_with_pictures() -> None:
    assert len(READMES) >= 4
    assert sum(bool(made_by(readme.parent)) for readme in READMES) >= 3


def made_by(folder: Path) -> list[str]:
    """Return the names of the pictures that the program of a bundle makes."""
    found = list(folder.glob("tests/*_support/pictures.py"))
    if not found:
        return []
    (program,) = found
    for node in ast.parse(program.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PICTURES":
            return [name for name, *_ in ast.literal_eval(node.value)]
    raise AssertionError(f"{program} has no PICTURES")
