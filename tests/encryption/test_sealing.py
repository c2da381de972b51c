"""What was sealed is opened as what it was sealed as, and as nothing else."""

from __future__ import annotations

import base64
import itertools
import os

import pytest

from headrace.encryption.cipher import Binding
from headrace.encryption.keys import make_keys
from headrace.encryption.sealing import Sealing
from headrace.errors import MissingEncryptionKey, SealRefused
from headrace.model.ids import new_id
from headrace.model.job import NewJob
from headrace.model.outcome import Failure
from headrace.model.sealed import key_of_args, read_document, shown_document
from tests.encryption.conftest import BOTH, K1, K2, new_key

JOB, OTHER = new_id(), new_id()
PLAIN = b'{"card":"4111"}'


def sealing(keys: str = f"k1:{K1}") -> Sealing:
    return Sealing(lambda: make_keys(None, keys, None))


BINDINGS = [
    Binding("arguments", JOB),
    Binding("arguments", OTHER),
    Binding("result", JOB),
    Binding("event", JOB, "go"),
    Binding("event", JOB, "stop"),
    Binding("stage", JOB, "go"),
    # Parts that are alike when they are written one behind the other.
    Binding("stage", JOB, ""),
    Binding("stag", JOB, "e"),
]


def test_a_value_is_refused_elsewhere() -> None:
    made = sealing()
    for one, other in itertools.permutations(BINDINGS, 2):
        document = made.document(one, PLAIN)
        assert made.open_document(one, document) == PLAIN
        with pytest.raises(SealRefused):
            made.open_document(other, document)


def test_the_same_value_is_never_sealed_alike() -> None:
    made = sealing()
    assert len({made.args(JOB, PLAIN) for _ in range(100)}) == 100


def test_each_job_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one nonce one key would make the same of the same text. Random ones of 96 bits may be
    alike among the values of all jobs together.
    """
    monkeypatch.setattr(os, "urandom", bytes)
    made = sealing()
    found = {read_document(made.args(job, PLAIN)) for job in (JOB, OTHER)}
    inner = {base64.b64decode(each.data)[17:-16] for each in found if each is not None}
    assert [len(each) for each in inner] == [len(PLAIN)] * 2


def test_every_bit_counts() -> None:
    made = sealing()
    sealed = read_document(made.args(JOB, PLAIN))
    assert sealed is not None
    data = base64.b64decode(sealed.data)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        document = b'{"$sealed":{"key":"k1","data":"%b"}}' % base64.b64encode(changed)
        # The first bytes say which key it was: that looks like another one.
        with pytest.raises((SealRefused, MissingEncryptionKey)):
            made.open_args(JOB, document)
    for cut in (b"", data[:10], data[:17], data[:-1]):
        document = b'{"$sealed":{"key":"k1","data":"%b"}}' % base64.b64encode(cut)
        with pytest.raises(SealRefused):
            made.open_args(JOB, document)


def test_a_value_under_the_name_of_another_key_is_refused() -> None:
    document = sealing().args(JOB, PLAIN).replace(b'"k1"', b'"k2"')
    with pytest.raises(MissingEncryptionKey, match='another key "k2"'):
        sealing(BOTH).open_args(JOB, document)
    # Also if both names stand for the same key.
    with pytest.raises(SealRefused):
        sealing(f"k2:{K1}").open_args(JOB, document)


def test_new_values_use_the_first_key_and_all_keys_open() -> None:
    old, both, new = sealing(), sealing(BOTH), sealing(f"k2:{K2}")
    before, after = old.args(JOB, PLAIN), both.args(JOB, PLAIN)
    assert (key_of_args(before), key_of_args(after)) == ("k1", "k2")
    assert both.open_args(JOB, before) == both.open_args(JOB, after) == PLAIN
    assert new.open_args(JOB, after) == PLAIN
    with pytest.raises(MissingEncryptionKey) as raised:
        new.open_args(JOB, before)
    assert raised.value.key == "k1"
    assert "it has k2" in str(raised.value)


def test_another_key_of_the_same_name_is_a_missing_key() -> None:
    """Not a value that was changed: with the right key it can be opened."""
    with pytest.raises(MissingEncryptionKey, match='another key "k1" than the one'):
        sealing(f"k1:{new_key()}").open_args(JOB, sealing().args(JOB, PLAIN))


def test_a_job_that_gets_another_id() -> None:
    made = sealing()
    job = NewJob(id=JOB, task="pay", args=made.args(JOB, PLAIN))
    renamed = made.with_id(job, OTHER)
    assert made.open_args(OTHER, renamed.args) == PLAIN
    run = NewJob(id=JOB, task="run", args=made.run_args(JOB, b'{"a":1}', b'{"id":"w"}'))
    renamed = made.with_id(run, OTHER)
    assert made.open_args(OTHER, renamed.args) == b'{"params":{"a":1},"workflow":{"id":"w"}}'


def test_errors_keep_their_type() -> None:
    made = sealing()
    failure = Failure("ValueError", "card 4111 ✗", "Traceback …\n4111")
    sealed = made.failure(JOB, failure)
    assert sealed.type == "ValueError"
    assert "4111" not in str(sealed)
    assert made.open_failure(JOB, sealed) == failure
    shown = sealing(f"k2:{K2}").open_failure(JOB, sealed)
    assert shown == Failure("ValueError", "sealed with key k1", "sealed with key k1")
    assert made.open_failure(OTHER, sealed) == shown


def test_views_tell_the_key_and_the_size() -> None:
    made = sealing()
    shown = shown_document(made.args(JOB, PLAIN))
    assert shown.startswith(b'{"$sealed":{"key":"k1","bytes":')
    assert shown_document(shown) == shown
    assert shown_document(PLAIN) == PLAIN
    looks_like_it = b'{"$sealed":{"other":1}}'
    assert shown_document(looks_like_it) == looks_like_it
