"""Signatures of webhooks, as Standard Webhooks has them (version 1, symmetric)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

from headrace.publishing.destinations import SECRET_PREFIX


def sign(event_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> str:
    """Return the value of `webhook-signature`: one signature for each secret."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(signed, secret)}" for secret in secrets)


def _signature(signed: bytes, secret: str) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
