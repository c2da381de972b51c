"""Where keys come from, what is wrong with them, and that no error shows one."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.config import SECRETS, load
from headrace.encryption.keys import Keys, make_keys
from tests.encryption.conftest import K1, K2

RAW = os.urandom(32)


def keys_of(app: headrace.App) -> Keys:
    assert app.sealing is not None
    return app.sealing.keys


def test_the_first_key_seals_and_all_open(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of last year\nk1:{K1}\n\n")
    keys = make_keys(None, f" k2:{K2} ", str(file))
    assert keys.first.name == "k2"
    assert keys.names == ["k2", "k1"]
    assert keys.find("k3") is None


@pytest.mark.parametrize(
    "given",
    [
        {"k1": RAW},
        {"k1": base64.b64encode(RAW).decode()},
        {"k1": base64.urlsafe_b64encode(RAW).decode().rstrip("=")},
        f"k1:{base64.b64encode(RAW).decode()}",
        lambda: {"k1": RAW},
    ],
    ids=["bytes", "base64", "urlsafe", "text", "function"],
)
def test_keys_in_code(given: Any) -> None:
    app = headrace.App("sqlite://", encryption=given)
    assert keys_of(app).first.secret == RAW


def test_a_function_is_called_once_and_not_before_it_is_needed() -> None:
    calls: list[int] = []

    def from_a_service() -> dict[str, bytes]:
        calls.append(1)
        return {"k1": RAW}

    app = headrace.App("sqlite://", encryption=from_a_service)

    @app.task(encrypt=True)
    async def pay(card: str) -> None: ...

    assert not calls
    pay.job(card="1")
    pay.job(card="2")
    assert calls == [1]


def test_keys_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"k2:{K2}")
    monkeypatch.setenv("HEADRACE_ENCRYPTION_KEYS", f"k1:{K1}")
    monkeypatch.setenv("HEADRACE_ENCRYPTION_KEY_FILE", str(tmp_path / "keys"))
    assert keys_of(headrace.App("sqlite://")).names == ["k1", "k2"]
    # What is given in code counts.
    assert keys_of(headrace.App("sqlite://", encryption={"k3": RAW})).names == ["k3"]


def test_without_keys_there_is_nothing_to_seal_with() -> None:
    assert headrace.App("sqlite://").sealing is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "there are no encryption keys"),
        (RAW.hex(), "entry 1 is not NAME:BASE64"),
        ("k1:c2hvcnQ=", 'key "k1" must be 32 bytes in base64, got 5 bytes'),
        ("k1:!!!", 'key "k1" must be 32 bytes in base64, got no base64'),
        ({"a key": RAW}, "a name that cannot be used"),
        (7, "must be keys by name"),
    ],
    ids=["empty", "no-name", "short", "no-base64", "bad-name", "no-keys"],
)
def test_keys_that_cannot_be_used_are_told_without_them(given: Any, told: str) -> None:
    with pytest.raises(headrace.InvalidSetting, match=told) as raised:
        make_keys(given, None, None)
    assert RAW.hex() not in str(raised.value)
    assert "c2hvcnQ" not in str(raised.value)


async def _coroutine() -> dict[str, bytes]:
    return {}


def test_other_keys_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(headrace.InvalidSetting, match="give a plain function"):
        make_keys(_coroutine, None, None)  # type: ignore[arg-type]
    with pytest.raises(headrace.InvalidSetting, match='two encryption keys are called "k1"'):
        make_keys(None, f"k1:{K1},k1:{K2}", None)
    with pytest.raises(headrace.InvalidSetting, match=r"missing cannot be read: No such file"):
        make_keys(None, None, str(tmp_path / "missing"))


def test_keys_are_shown_nowhere() -> None:
    settings = load(encryption_keys=f"k1:{K1}")
    assert "encryption_keys" in SECRETS
    keys = make_keys(None, f"k1:{K1}", None)
    for shown in (repr(settings), repr(keys), repr(keys.first)):
        assert K1[:20] not in shown
        assert repr(keys.first.secret) not in shown
