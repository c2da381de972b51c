"""What is odd in YAML is read alike, or refused alike, in every file that Headrace reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.dispatchers.cron.config import read_file
from headrace.dispatchers.events.config import read_queue_config
from headrace.errors import InvalidInput
from headrace.workflows.load import load_file

Read = Callable[[bytes], Any]
File = tuple[str, Callable[[Path], Any]]


def of_workflow(path: Path) -> Any:
    app = App("redis://127.0.0.1:1/0")

    @app.task
    async def anything(value: Any) -> None: ...

    return load_file(path, app.tasks).steps[0].params["value"]


def of_schedule(path: Path) -> Any:
    file = read_file(path)
    assert file is not None
    return file.schedules[0].params["value"]


def of_queue(path: Path) -> Any:
    return read_queue_config(path, environment={}).options["value"]


# In each of them the value stands in line 6.
FILES: dict[str, File] = {
    "workflow": (
        "id: w\nsteps:\n  - id: a\n    task: anything\n    params:\n      value: ",
        of_workflow,
    ),
    "schedule": (
        "schedules:\n  a:\n    task: t\n    expression: '@daily'\n    params:\n      value: ",
        of_schedule,
    ),
    "queue": ("\n\n\nadapter: kafka\noptions:\n      value: ", of_queue),
}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest) -> File:
    return FILES[request.param]


@pytest.fixture
def read(file: File, tmp_path: Path) -> Read:
    """Write a file of these bytes, and answer the value in it."""

    def read(content: bytes) -> Any:
        path = tmp_path / "file.yaml"
        path.write_bytes(content)
        return file[1](path)

    return read


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("2026-13-45", "2026-13-45"),
        ("2026-01-01 10:00:00 +09:00", "2026-01-01 10:00:00 +09:00"),
        ("12:30", "12:30"),
        ("1:30:00.5", "1:30:00.5"),
        ("yes", "yes"),
        ("off", "off"),
        ("no", "no"),
        ("true", True),
        ("'on'", "on"),
        ("~", None),
        ("", None),
        ("010", 10),
        ("0o10", 8),
        ("1e3", 1000.0),
        ("=", "="),
        ("<<", "<<"),
        ("!!str 7", "7"),
        ("서울 😀", "서울 😀"),
        (r'"\ud83d\ude00"', "😀"),
        ("{on: a}", {"on": "a"}),
        ("{2026-01-01: a}", {"2026-01-01": "a"}),
        ("[&x {a: 1}, *x]", [{"a": 1}, {"a": 1}]),
        ("{<<: {a: 1, b: 2}, b: 3}", {"a": 1, "b": 3}),
        ("{<<: [{a: 1}, {a: 2, b: 2}], c: 3}", {"a": 1, "b": 2, "c": 3}),
    ],
)
def test_what_yaml_would_turn_into_something_else(
    file: File, read: Read, written: str, value: Any
) -> None:
    assert read(f"{file[0]}{written}\n".encode()) == value


def test_a_byte_order_mark_and_windows_lines_are_fine(file: File, read: Read) -> None:
    content = f"{file[0]}a\n".replace("\n", "\r\n").encode("utf-8-sig")
    assert read(content) == "a"


TAGGED = "value cannot be read: it has a tag (!); leave that out"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("{a: 1, a: 2}", 'value has "a" twice, first in line 6; keep one'),
        ("{a: 1, 'a': 2}", 'value has "a" twice, first in line 6; keep one'),
        ("{7: a}", 'value: the name 7 is not text; quote it: "7"'),
        ("{true: a}", 'value: the name true is not text; quote it: "true"'),
        ("{~: a}", "value: the name ~ is not text"),
        ("{[a]: b}", "value: a name has to be text; quote it"),
        ("{{a}}", "value: a name has to be text; quote it"),
        (".nan", "value is .nan, which is no number of JSON"),
        ("-.inf", "value is -.inf, which is no number of JSON"),
        ("!!bool hunter2", "value cannot be read as !!bool; quote it if text is meant"),
        ("!!int ''", "value cannot be read as !!int"),
        ("9" * 5_000, "value cannot be read as !!int"),
        ("!!binary aHVudGVyMg==", TAGGED),
        ("!!set {a}", TAGGED),
        ("!!python/object:os.system {}", TAGGED),
        ("!!python/object/apply:os.system [hunter2]", TAGGED),
        ("!hunter2", TAGGED),
        ("!hunter2!a b", "this tag (!) is not known; quote a text that begins with !"),
        ("*hunter2", "this alias (*) has no anchor (&); quote a text that begins with *"),
        ("[&hunter2 a, &hunter2 b]", "this anchor (&) is there twice"),
        (r'"\ud800"', "value has half a character"),
        ("{<<: 7}", "<< must refer to names with values"),
        ("&a [*a]", "is nested more than 100 deep"),
        ("&a {b: *a}", "is nested more than 100 deep"),
        ("&a {<<: *a}", "is nested more than 100 deep"),
        ("[" * 120 + "]" * 120, "is nested more than 100 deep"),
        ("\ta: 1", "a tab cannot stand here; indent with spaces"),
        ("a\x00", "the character U+0000 cannot be in it; remove it"),
        ("[a", "is not valid YAML: expected ',' or ']'"),
    ],
)
def test_what_is_refused_with_its_line(file: File, read: Read, written: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(f"{file[0]}{written}".encode())
    assert reason in str(refused.value)
    assert "file.yaml line 6" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (b"a\n---\nb: 1\n", "line 7 is not valid YAML: a second document begins here"),
        (b"a\n\t\tb: 1\n", "line 7 is not valid YAML: a tab cannot stand here"),
        (b"a\n# \xff\n", "line 7 is not UTF-8 text; save it as UTF-8"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"a\n#" + b"#" * 4_194_304, "is larger than 4,194,304 bytes"),
    ],
)
def test_what_is_refused_below(file: File, read: Read, more: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(file[0].encode() + more)
    assert f"file.yaml {reason}" in str(refused.value)


def test_other_encodings_are_refused(file: File, read: Read) -> None:
    with pytest.raises(InvalidInput, match="line 1 is not UTF-8 text; save it as UTF-8"):
        read(f"{file[0]}a\n".encode("utf-16"))
    with pytest.raises(InvalidInput, match=r"line 1 is not valid YAML: the character U\+0000"):
        read(f"{file[0]}a\n".encode("utf-16-be"))


def test_a_short_file_does_not_stand_for_an_endless_one(file: File, read: Read) -> None:
    layers = ["&a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InvalidInput, match="stands for more than 100,000 values"):
        read(f"{file[0]}[{', '.join(layers)}]".encode())
    merges = ["&a0 {k0: x}"]
    merges += [f"&a{n} {{k{n}: x, <<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)]
    with pytest.raises(InvalidInput, match="stands for more than 100,000 values"):
        read(f"{file[0]}[{', '.join(merges)}]".encode())
    text = f"[&a {'x' * 10_000}{', *a' * 1_000}]"
    with pytest.raises(InvalidInput, match="stands for more than 4,194,304 characters"):
        read(f"{file[0]}{text}".encode())
