"""Seals bytes with AES-256-GCM, by the package `cryptography`. Needs the extra `encryption`.

    version (1 byte) | check of the key (4) | nonce (12) | what is encrypted, with its tag (16)

Each owner (a job) has a key of its own, derived from the named one. So the number of values that
one named key may seal has no bound that anybody reaches: random nonces of 96 bits only have to
differ among the values of one job.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hmac
import os
from typing import TYPE_CHECKING, NamedTuple

from headrace.encryption.keys import CHECK_BYTES, EncryptionKey, Keys
from headrace.errors import MissingDriver, MissingEncryptionKey, SealRefused
from headrace.model.sealed import Sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = b"\x01"
NONCE_BYTES = 12
_HEAD = 1 + CHECK_BYTES + NONCE_BYTES
REMEDY = "give it to this process (HEADRACE_ENCRYPTION_KEYS, HEADRACE_ENCRYPTION_KEY_FILE)"


class Binding(NamedTuple):
    """What a value belongs to. It is opened only as what it was sealed as: of this kind, of this
    owner (a job's id, or the name of a record), under this name.
    """

    kind: str
    owner: str
    name: str = ""


@functools.cache
def load_cipher() -> tuple[type[AESGCM], type[Exception]]:
    """Return the cipher, and what it raises for a value that is not authentic. Raises
    `MissingDriver` without the extra.
    """
    try:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDriver(
            f'encryption needs {error.name}; install it: pip install "headrace[encryption]"'
        ) from error
    return AESGCM, InvalidTag


def seal(keys: Keys, binding: Binding, plain: bytes) -> Sealed:
    """Seal bytes with the first key."""
    key = keys.first
    nonce = os.urandom(NONCE_BYTES)
    cipher, _ = load_cipher()
    inner = cipher(_derived(key, binding)).encrypt(nonce, plain, _associated(key, binding))
    data = base64.b64encode(VERSION + key.check + nonce + inner)
    return Sealed(key.name, data.decode())


def unseal(keys: Keys, binding: Binding, sealed: Sealed) -> bytes:
    """Return what was sealed. Raises `MissingEncryptionKey` if this process does not have the key,
    and `SealRefused` if the value was changed, or belongs to something else.
    """
    key = keys.find(sealed.key)
    if key is None:
        raise MissingEncryptionKey(
            f'{shown(binding)} is sealed with key "{sealed.key}", which this process does not have '
            f"(it has {', '.join(keys.names)}); {REMEDY}",
            key=sealed.key,
        )
    try:
        data = base64.b64decode(sealed.data, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) <= _HEAD:
        raise SealRefused(f"{shown(binding)} is no sealed value any more: it was cut or changed")
    if data[:1] != VERSION:
        raise SealRefused(
            f"{shown(binding)} was sealed by a later version of headrace, in a form that this one "
            "cannot open; use that version"
        )
    if data[1 : 1 + CHECK_BYTES] != key.check:
        raise MissingEncryptionKey(
            f'{shown(binding)} is sealed with another key "{sealed.key}" than the one that this '
            f"process has by this name; {REMEDY}",
            key=sealed.key,
        )
    return _decrypted(key, binding, data)


def _decrypted(key: EncryptionKey, binding: Binding, data: bytes) -> bytes:
    cipher, not_authentic = load_cipher()
    nonce = data[1 + CHECK_BYTES : _HEAD]
    try:
        return cipher(_derived(key, binding)).decrypt(
            nonce, data[_HEAD:], _associated(key, binding)
        )
    except not_authentic:
        raise SealRefused(
            f"{shown(binding)} was refused: it was changed, or sealed for another job or under "
            "another name"
        ) from None


def shown(binding: Binding) -> str:
    """Return what a value is, in words."""
    if binding.kind in _RECORDS:
        return f'the {binding.kind} of {_RECORDS[binding.kind]} "{binding.owner}"'
    name = f" {binding.name!r}" if binding.name else ""
    return f"job {binding.owner}: its {binding.kind}{name}"


_RECORDS = {"params": "schedule", "message": "dead letter"}


def _derived(key: EncryptionKey, binding: Binding) -> bytes:
    return hmac.digest(key.secret, b"headrace sealed 1\0" + binding.owner.encode(), "sha256")


def _associated(key: EncryptionKey, binding: Binding) -> bytes:
    # With their lengths, so that no two bindings are written alike.
    parts = [part.encode("utf-8", "surrogatepass") for part in (key.name, *binding)]
    return VERSION + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
