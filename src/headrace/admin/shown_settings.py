"""The settings in force, as people may see them."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.config import SECRETS, Settings
from headrace.engine.stored_text import redacted


def shown_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings without secrets."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    for name in ("url", "artifacts", "api_url"):
        if shown[name] is not None:
            shown[name] = redacted(shown[name])
    shown["stores"] = {queues: redacted(url) for queues, url in settings.stores.items()}
    return shown | {name: "***" for name in SECRETS if shown[name] is not None}
