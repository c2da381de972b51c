"""The command line speaks dialogues, on the store and through a server; a worker is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from speech_support.listening import hear
from speech_support.running import Running, wait_for
from speech_support.speech_server import SpeechServer
from tests.support.servers import free_port
from tests.support.stores import Stores

# Commands take their time where many run at once.
pytestmark = pytest.mark.timeout(300)

USAGE = 2
DIALOGUE = """
title: 인사 · Greetings
voices: {지나: ko+f2, Tom: en-us+m3}
turns:
  - 지나: 안녕하세요. 만나서 반갑습니다.
  - Tom: Hello Jina, nice to meet you too.
"""


@pytest.fixture(scope="module")
def running(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("speech-commands")
    made = Running(folder, stores.url("sqlite", folder), free_port())
    try:
        made.start_server()
        made.start("worker", "--lease", "8s")
        yield made
    finally:
        made.stop()


def test_a_dialogue_is_said_fetched_and_deleted_on_the_store(
    running: Running, tmp_path: Path
) -> None:
    file = tmp_path / "dialogue.yaml"
    file.write_text(DIALOGUE, encoding="utf-8")
    out = tmp_path / "out.mp3"
    done = json.loads(running.run("say", str(file), "-o", str(out), "--json").stdout)
    assert (done["status"], done["title"]) == ("completed", "인사 · Greetings")
    assert 3 < hear(out.read_bytes()).seconds < 12
    job_id = done["job_id"]
    again = tmp_path / "again.mp3"
    running.run("get", job_id, "-o", str(again))
    assert again.read_bytes() == out.read_bytes()
    assert "1 deleted" in running.run("delete", job_id).stdout
    assert running.client.get(f"/jobs/{job_id}").status_code == 404


def test_the_same_through_a_server(running: Running, tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        done = running.run(*arguments, code=code, remote=True)
        return done.stdout + done.stderr

    file = tmp_path / "dialogue.yaml"
    file.write_text(DIALOGUE, encoding="utf-8")
    out = tmp_path / "out.wav"
    assert "of 2 turns in" in run("say", str(file), "-o", str(out))
    assert out.read_bytes()[:4] == b"RIFF"
    assert "인사 · Greetings" in run("list", "--user", "local")
    file.write_text("turns: [{A: a}]\nvoices: {A: xx}", encoding="utf-8")
    assert "does not have" in run("say", str(file), code=USAGE)
    variants = json.loads(run("voices", "--variants", "--json"))["voices"]
    assert "f2" in [each["voice"] for each in variants]


def test_a_worker_that_is_killed_leaves_a_job_that_can_be_handed_in_again(
    stores: Stores, tmp_path: Path, server: SpeechServer
) -> None:
    settings = {"HEADRACE_SPEECH_OPENAI_URL": server.url}
    running = Running(tmp_path, stores.url("sqlite", tmp_path), free_port(), settings)
    try:
        running.start_server()
        worker = running.start("worker", "--lease", "5s")
        turns = [{"role": "A", "text": text} for text in ("one", "two", "three")]
        body = {"provider": "openai", "turns": turns, "voice_assignments": {"A": "alloy"}}
        server.hold = True
        job_id = running.client.post("/jobs", json=body).json()["job_id"]
        wait_for(lambda: server.held == ["one"], "a turn", lambda: running.log("worker"))
        server.release("one")
        wait_for(lambda: server.held == ["two"], "the next", lambda: running.log("worker"))
        worker.kill()
        worker.wait()
        assert running.get(job_id)["status"] == "running"
        # Another one notices, and does not speak it by itself.
        running.start("worker", "--lease", "5s")
        wait_for(
            lambda: running.get(job_id)["status"] == "failed",
            "the interrupted job",
            lambda: f"{running.get(job_id)}\n{running.log('worker')}",
        )
        shown = running.get(job_id)
        assert shown["error_message"].startswith("interrupted")
        assert shown["audio_file_id"] is None
        # A turn can be heard although the whole is not there.
        assert running.client.get(f"/jobs/{job_id}/turns/1").content[:4] == b"RIFF"
        assert running.client.get(f"/jobs/{job_id}/turns/2").status_code == 404
        server.release_all()
        assert running.client.post(f"/jobs/{job_id}/retry").status_code == 202
        wait_for(
            lambda: running.get(job_id)["status"] == "completed",
            "the whole",
            lambda: f"{running.get(job_id)}\n{running.log('worker')}",
        )
        assert [server.asked(text) for text in ("one", "two", "three")] == [1, 2, 1]
    finally:
        running.stop()
