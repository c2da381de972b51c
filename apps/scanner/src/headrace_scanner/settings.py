"""Settings of the bundle: `HEADRACE_SCANNER_<NAME>`, or `[scanner]` in headrace.toml."""

from __future__ import annotations

import msgspec

from headrace import InvalidSetting

MEBIBYTE = 1 << 20
# What is shorter needs no rate: to start a job takes longer.
SHORTEST_DELAY = 0.001
SHOPS_VARIABLE = "HEADRACE_SCANNER_SHOPS"


class ScannerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be changed without touching code."""

    shops: str | None = None
    """An address that stands for all shops, such as http://127.0.0.1:8080: that of a platform is
    below its name. It may be a private one."""
    platforms: str | None = None
    """A folder of platform files (JSON) that replace those of the package."""
    browser: str = "lightpanda"
    """`lightpanda`, `chromium` (one that is found here), the path of a Chromium, or the address of
    a browser that runs already (http://… or ws://…)."""
    allow_private: bool = False
    """Whether products may be at private addresses (this machine, the network behind the
    firewall)."""
    user_agent: str = "HeadraceScanner/0.1"
    """How the scanner introduces itself to shops without a browser. Add an address of yours."""
    delay_seconds: float = 1.0
    """The least time between two products of a batch, and between the beginnings of two batches of
    a platform."""
    visit_seconds: float = 30.0
    """A product that takes longer is given up."""
    patience_seconds: float = 20.0
    """So long a shop may ask to wait; if it asks for more, the product counts as blocked."""
    tries: int = 2
    """So often a product is asked for if the shop does not answer, or with an error."""
    blocked_in_a_row: int = 3
    """After so many refusals in a row the rest of the batch is not asked for."""
    batch_size: int = 20
    """So many products are scanned by one job, with one browser."""
    largest_page: int = 4 * MEBIBYTE
    most_products: int = 100_000
    """A run has no more products than this."""
    keep_days: int = 90
    """Scans older than this are deleted; changes stay."""

    @property
    def rate(self) -> str | None:
        """How fast batches of a platform may begin. Shops of ours need not be spared."""
        spared = self.delay_seconds if self.shops is None else 0.0
        return f"{1 / spared:.9f}/s" if spared >= SHORTEST_DELAY else None

    def __post_init__(self) -> None:
        for name in ("tries", "blocked_in_a_row", "batch_size", "largest_page", "most_products"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("delay_seconds", "patience_seconds", "keep_days"):
            if not getattr(self, name) >= 0:
                raise InvalidSetting(f"{name} must be at least 0, got {getattr(self, name)}")
        if not self.visit_seconds > 0:
            raise InvalidSetting(f"visit_seconds must be more than 0, got {self.visit_seconds}")
        if not self.user_agent.isprintable() or not self.user_agent.strip():
            raise InvalidSetting(f"user_agent must be printable text, got {self.user_agent!r}")
        if self.shops is not None and not self.shops.startswith(("http://", "https://")):
            raise InvalidSetting(f"shops must begin with http:// or https://, got {self.shops!r}")
