"""Hooks of MkDocs, which makes the site from these pages; see `mkdocs.yml`."""

from __future__ import annotations

import re
from typing import Any

_COMMENT = re.compile(r"^<!--.*?-->\n?", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page without its comments.

    They mark code for the tests and hold code that completes it: nothing for readers, but the
    search would index it.
    """
    return _COMMENT.sub("", markdown)
