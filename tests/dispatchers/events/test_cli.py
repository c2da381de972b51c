"""`headrace dispatcher queue` and `headrace dead-letters` as people run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from headrace.dispatchers.events.adapter import Message
from headrace.dispatchers.events.message_parser import MessageParser
from tests.cli.conftest import Cli
from tests.dispatchers.events.scene import Scene, message
from tests.support.example_adapter import FILE
from tests.support.processes import Processes, until

APP = ("--app", "tests.dispatchers.events.program")
# Set aside because there is no such task; "work" is spelt right in what replaces it.
LOST = b'{"handler_name": "wrok", "params": {"number": 1}}'


@pytest.fixture
def cli(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    root = Path(__file__).parents[3]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'src'}")
    return Cli(tmp_path, scene.url)


async def set_aside(scene: Scene, *bodies: bytes) -> None:
    messages = [
        Message(
            body=body, topic="orders", key=f"kafka:orders:0:{number}", partition=0, offset=number
        )
        for number, body in enumerate(bodies)
    ]
    await scene.letters.keep("kafka", MessageParser(scene.app).parse(messages).refused)


async def test_a_dispatcher_with_an_adapter_of_ones_own(
    scene: Scene, tmp_path: Path, cli: Cli
) -> None:
    shutil.copy(FILE, tmp_path)
    config = scene.config("folder_adapter:FolderAdapter", {"folder": "messages"}, name="mine")
    checked = cli("dispatcher", "queue", "--config", str(config), "--check", "--json", *APP)
    assert checked.json["adapter"] == "folder"
    folder = tmp_path / "messages"
    folder.mkdir()
    with Processes(tmp_path) as processes:
        process = scene.process(processes, config, "--json")
        for number in range(3):
            (folder / f"{number}.json").write_bytes(message("work", number=number))
        (folder / "bad.json").write_bytes(b"bad")
        await scene.has_jobs(3)
        await scene.has_letters(1)

        async def seen() -> bool:
            [listed] = cli("dispatcher", "list", "--json").json["dispatchers"]
            return bool(listed["stored"] == 3 and listed["lag"] == 0 and not listed["silent"])

        await until(seen, "the dispatcher in the list")
        assert "mine" in cli("dispatcher", "list").out
        process.terminate()
        assert await process.ended() == 0, process.said
    told = json.loads(process.said.splitlines()[-1])
    assert (told["event"], told["stored"], told["set_aside"]) == ("stopped", 3, 1)
    assert cli("dispatcher", "list", "--json").json == {"dispatchers": []}


async def test_a_mistake_in_the_file_is_told_and_starts_nothing(scene: Scene, cli: Cli) -> None:
    config = scene.config("kafka", {"topics": ["t"], "grup": "x"})
    ran = cli("dispatcher", "queue", "--config", str(config), *APP, code=2)
    assert 'did you mean "group"?' in ran.err
    ran = cli("dispatcher", "queue", "--config", "none.yaml", *APP, code=2)
    assert "there is no file" in ran.err
    ran = cli("dispatcher", "queue", "--config", str(config), code=2)
    assert "which App?" in ran.err


async def test_a_dispatcher_gives_up_where_it_is_told_to(scene: Scene, cli: Cli) -> None:
    config = scene.config("nats", {"stream": "t", "servers": "nats://127.0.0.1:1"})
    ran = cli(
        *("dispatcher", "queue", "--config", str(config), *APP),
        code=3,
        HEADRACE_CONNECTION_RETRIES="0",
    )
    assert "connection_retries is 0" in ran.err


async def test_dead_letters_are_listed_and_shown(scene: Scene, cli: Cli) -> None:
    assert cli("dead-letters", "list", "--json").json == {"dead_letters": []}
    await set_aside(scene, LOST, b"\xff\x00 binary")
    [first, second] = cli("dead-letters", "list", "--json").json["dead_letters"]
    assert first["id"] == "kafka:orders:0:0"
    assert first["error"] == "UnknownTask"
    assert "raw" not in first
    assert second["size"] == 9
    shown = cli("dead-letters", "show", first["id"], "--json").json
    assert shown["raw"] == "eyJoYW5kbGVyX25hbWUiOiAid3JvayIsICJwYXJhbXMiOiB7Im51bWJlciI6IDF9fQ=="
    assert (shown["topic"], shown["partition"], shown["offset"]) == ("orders", 0, 0)
    assert cli("dead-letters", "show", first["id"], "--raw").out == LOST.decode()
    people = cli("dead-letters", "show", second["id"]).out
    assert "\x00" not in people
    assert "orders" in people
    assert "kafka:orders:0:1" in cli("dead-letters", "list", "--topic", "orders").out
    assert cli("dead-letters", "list", "--topic", "x", "--json").json == {"dead_letters": []}
    limited = cli("dead-letters", "list", "--limit", "1", "--json")
    assert len(limited.json["dead_letters"]) == 1
    assert "there are more" in limited.err
    missing = cli("dead-letters", "show", "kafka:orders:0:9", code=1)
    assert "kafka:orders:0:0" in missing.err


async def test_a_dead_letter_is_replayed_once_its_task_is_there(
    scene: Scene, cli: Cli, tmp_path: Path
) -> None:
    await set_aside(scene, LOST, b"never")
    refused = cli("dead-letters", "replay", "--all", "--yes", "--json", *APP, code=1)
    assert [each["done"] for each in refused.json["dead_letters"]] == [False, False]
    assert 'Registered: "work"' in refused.json["dead_letters"][0]["error"]
    (tmp_path / "mended.py").write_text(
        "import headrace\napp = headrace.App()\n"
        "@app.task\nasync def wrok(number: int) -> None: ...\n",
        encoding="utf-8",
    )
    done = cli("dead-letters", "replay", "kafka:orders:0:0", "--app", "mended", "--json").json
    [job] = await scene.jobs()
    assert done["dead_letters"] == [
        {"id": "kafka:orders:0:0", "done": True, "job_id": job.id, "created": True}
    ]
    assert (job.task, job.key, job.source) == ("wrok", "kafka:orders:0:0", "event")
    assert [letter.id for letter in await scene.has_letters(1)] == ["kafka:orders:0:1"]
    # If it is delivered again, or replayed again, it makes no second job.
    await set_aside(scene, LOST)
    again = cli("dead-letters", "replay", "kafka:orders:0:0", "--app", "mended", "--json").json
    assert again["dead_letters"][0]["created"] is False
    assert len(await scene.jobs()) == 1


async def test_dead_letters_are_removed(scene: Scene, cli: Cli) -> None:
    await set_aside(scene, b"one", b"two", b"three")
    assert "add --yes" in cli("dead-letters", "remove", "--all", code=2).err
    assert "which messages?" in cli("dead-letters", "remove", code=2).err
    assert "not both" in cli("dead-letters", "remove", "x", "--all", code=2).err
    cli("dead-letters", "remove", "kafka:orders:0:1")
    assert len(await scene.has_letters(2)) == 2
    removed = cli("dead-letters", "remove", "--topic", "orders", "--yes", "--json").json
    assert [each["done"] for each in removed["dead_letters"]] == [True, True]
    assert await scene.letters.page() == []
