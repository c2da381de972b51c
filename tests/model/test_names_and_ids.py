from __future__ import annotations

import os
import threading
import uuid

import pytest

from headrace.errors import InvalidInput, InvalidName
from headrace.model.ids import new_id, new_ids, parse_id
from headrace.model.names import check_name


def test_ids_are_uuid7_and_strictly_increase() -> None:
    ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(set(ids))
    parsed = uuid.UUID(ids[0])
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parse_id(ids[0].upper()) == ids[0]


def test_ids_that_are_made_together_are_like_others() -> None:
    before, together, after = new_id(), new_ids(3_000), new_id()
    ids = [before, *together, after]
    assert ids == sorted(set(ids))
    assert all(uuid.UUID(each).version == 7 and parse_id(each) == each for each in together)
    assert new_ids(0) == []


def test_threads_never_make_the_same_id() -> None:
    made: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: made.append([new_id() for _ in range(2_000)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each for group in made for each in group}) == 8_000


def test_a_forked_child_makes_ids_of_its_own() -> None:
    new_id()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 36).decode()
    os.close(read)
    os.close(write)
    assert theirs[19:] != new_id()[19:]


@pytest.mark.parametrize("text", ["", "x", "0198", "'; drop table job", None])
def test_what_is_not_an_id_is_named(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a UUID"):
        parse_id(text)


@pytest.mark.parametrize("name", ["a", "mail.send", "platform:musinsa", "A-1_b", "9", "_x"])
def test_good_names(name: str) -> None:
    assert check_name("queue", name) == name


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", ".a", "é", "a\n", "a" * 129, "a/b", None])
def test_bad_names_are_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidName, match="queue name"):
        check_name("queue", name)
