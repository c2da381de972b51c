"""How shops are asked. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How shops are asked."""

    user_agent: str
    browser: str
    delay: float
    visit_seconds: float
    patience: float
    tries: int
    blocked_in_a_row: int
    largest_page: int
    allows_private: Callable[[str], bool]
    """Whether an address may be a private one."""
