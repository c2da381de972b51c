"""Keys: from the environment, a file, a mapping or a function. The first seals, all of them open.

    k2:8Zr…=,k1:Yh0…=                          the text of a setting; a line for each in a file

No error and no representation shows a key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import InvalidSetting

KEY_BYTES = 32
CHECK_BYTES = 4
HOW = "make one with: openssl rand -base64 32"

Given = Mapping[str, bytes | str] | str
"""Keys by name, as 32 bytes or as their base64; or the text of the setting."""
KeySource = Given | Callable[[], Given]
"""Keys, or a function that returns them: where they are in a key management service."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SEPARATOR = re.compile(r"[,\n]")


class EncryptionKey(msgspec.Struct, frozen=True, eq=False):
    """A key. `check` tells keys of the same name apart, and says nothing of the key."""

    name: str
    secret: bytes
    check: bytes

    def __repr__(self) -> str:
        return f"<Key {self.name}>"


class Keys:
    """The keys of an App, by name. The first is the one that seals."""

    def __init__(self, keys: Iterable[EncryptionKey]) -> None:
        self._keys: dict[str, EncryptionKey] = {}
        for key in keys:
            known = self._keys.setdefault(key.name, key)
            if known.secret != key.secret:
                raise InvalidSetting(
                    f'two encryption keys are called "{key.name}" and differ; give the newer one '
                    "another name"
                )

    def __repr__(self) -> str:
        return f"<Keys {', '.join(self._keys)}>"

    @property
    def first(self) -> EncryptionKey:
        """Return the key that seals."""
        return next(iter(self._keys.values()))

    @property
    def names(self) -> list[str]:
        """Return the names of all keys, the one that seals first."""
        return list(self._keys)

    def find(self, name: str) -> EncryptionKey | None:
        """Return the key of this name, if it is here."""
        return self._keys.get(name)


def make_keys(given: KeySource | None, text: str | None, file: str | None) -> Keys:
    """Return the keys that are given in code; without these, those of the settings: of the text
    `encryption_keys` first, then of the file. Raises `InvalidSetting` if there are none.
    """
    found: list[EncryptionKey] = []
    if given is not None:
        found += _of(given() if callable(given) else given, "App(encryption=…)")
    else:
        if text is not None:
            found += _of(text, "encryption_keys")
        if file is not None:
            found += _of(_read(file), f"encryption_key_file {file}")
    if not found:
        raise InvalidSetting(f"there are no encryption keys in what was given; {HOW}")
    return Keys(found)


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InvalidSetting(
            f"encryption_key_file {file} cannot be read: {reason}; give a file that has a line "
            "NAME:BASE64 for each key"
        ) from None


def _of(given: Any, where: str) -> list[EncryptionKey]:
    if inspect.iscoroutine(given):
        given.close()
        raise InvalidSetting(f"{where} is a coroutine function; give a plain function")
    if isinstance(given, Mapping):
        return [_key(name, value, where) for name, value in given.items()]
    if not isinstance(given, str):
        raise InvalidSetting(
            f'{where} must be keys by name, {{"k1": …}}, or a function that returns them, got '
            f"{type(given).__name__}"
        )
    found = []
    for number, part in enumerate(_parts(given), 1):
        name, colon, value = part.partition(":")
        if not colon:
            # Not shown: it may be a key.
            raise InvalidSetting(f"{where}: entry {number} is not NAME:BASE64; {HOW}")
        found.append(_key(name.strip(), value.strip(), where))
    return found


def _parts(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [part.strip() for part in _SEPARATOR.split("\n".join(lines)) if part.strip()]


def _key(name: Any, value: Any, where: str) -> EncryptionKey:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSetting(
            f"{where}: a key has a name that cannot be used; use letters, digits, dots, dashes "
            "and _, at most 63 of them"
        )
    secret = value if isinstance(value, bytes) else _decoded(value)
    if secret is None or len(secret) != KEY_BYTES:
        size = "no base64" if secret is None else f"{len(secret)} bytes"
        raise InvalidSetting(
            f'{where}: key "{name}" must be {KEY_BYTES} bytes in base64, got {size}; {HOW}'
        )
    check = hashlib.sha256(b"headrace key check\0" + secret).digest()[:CHECK_BYTES]
    return EncryptionKey(name, secret, check)


def _decoded(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    text = value.strip().rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
