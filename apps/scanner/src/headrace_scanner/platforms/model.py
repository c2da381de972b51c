"""Platform files: JSON, one for each platform, so that a shop that changes its pages changes no
code.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

from headrace import InvalidSetting

NAMES = ("hwahae", "oliveyoung", "zigzag", "musinsa", "ably", "kurly", "extract", "default")
"""The queues, in the order in which they are shown."""
SHOPS = tuple(name for name in NAMES if name != "extract")
"""Those with products of their own; `extract` asks the others."""
LANE = "platform"
"""Runs hold this lane of their queue: one at a time on each platform, over all machines."""
STEP_LANE = "step"
"""Steps hold this one. A run that was cancelled may be followed while its step still stops."""

Reader = Literal["api", "browser", "page", "none"]
_ID = "{id}"


class Platform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A platform. What `name`, `price` and `status` are depends on its reader: pointers into JSON
    (`/data/price`) for `api`, CSS selectors for `browser`; `page` reads JSON-LD and needs none.
    """

    platform: str
    title: str
    reader: Reader
    base: str | None = None
    """Where the shop is; None: each product has an address of its own."""
    product: str = ""
    """The path of a product below `base`, with `{id}`."""
    name: str = ""
    price: str = ""
    status: str | None = None
    statuses: dict[str, str] = {}
    """What the shop calls a sale status, and what we do; others are `on_sale`."""
    wait_for: str | None = None
    """Scripts are done when this selector is there."""
    sold_out: str | None = None
    """A selector that is there if the product is sold out."""
    blocked: str | None = None
    """A selector of pages that refuse us."""

    @property
    def workflow(self) -> str:
        """Return the id of its workflow."""
        return f"{self.platform}-validation-v2"

    def url_of(self, base: str | None, external_id: str) -> str | None:
        """Return the address of a product; None if only its owner knows it."""
        if base is None:
            return None
        return base.rstrip("/") + self.product.replace(_ID, quote(external_id, safe=""))

    def id_in(self, base: str | None, url: str) -> str | None:
        """Return the id of the product at an address; None if it is not of this shop."""
        if base is None:
            return None
        before, _, after = (base.rstrip("/") + self.product).partition(_ID)
        rest = url.partition("#")[0]
        if not rest.startswith(before):
            return None
        found = rest.removeprefix(before)
        if after and after in found:
            found = found.partition(after)[0]
        found = unquote(found.partition("?")[0].partition("&")[0].strip("/"))
        return found if found and "/" not in found else None


def load_platforms(folder: str | None = None) -> Mapping[str, Platform]:
    """Return all platforms by name: those of the package, replaced by those of a folder."""
    found = {}
    for name in NAMES:
        text = files(__package__).joinpath(f"{name}.json").read_bytes()
        found[name] = _read(text, f"{name}.json")
    if folder is None:
        return found
    place = Path(folder)
    if not place.is_dir():
        raise InvalidSetting(f"platforms is {folder!r}, which is not a folder")
    for path in sorted(place.glob("*.json")):
        read = _read(path.read_bytes(), str(path))
        if read.platform not in NAMES:
            known = ", ".join(NAMES)
            raise InvalidSetting(f"{path}: platform is {read.platform!r}; use one of {known}")
        if read.reader != found[read.platform].reader:
            # The workflow of a platform says which kind of worker it needs.
            raise InvalidSetting(
                f"{path}: reader is {read.reader!r}, but the workflow of {read.platform} is made "
                f"for {found[read.platform].reader!r}"
            )
        found[read.platform] = read
    return found


def _read(content: bytes, where: str) -> Platform:
    try:
        platform = msgspec.json.decode(content, type=Platform)
    except msgspec.DecodeError as error:
        raise InvalidSetting(f"{where}: {error}") from None
    if platform.base is not None and _ID not in platform.product:
        raise InvalidSetting(f'{where}: product is {platform.product!r}; it has to contain "{_ID}"')
    if platform.reader in ("api", "browser") and not (platform.name and platform.price):
        raise InvalidSetting(f"{where}: name and price say where they are found; give both")
    return platform
