"""People are told which store is away: by commands, by the page Now, and over HTTP."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import headrace
from headrace.config import Settings, load
from headrace.engine.open import open_engine
from headrace.errors import InvalidSetting
from tests.engine.several.conftest import Trio
from tests.server.conftest import client_of
from tests.support.processes import HEADRACE
from tests.support.verbs import enqueue


def command(trio: Trio, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    stores = ", ".join(f"{queues}={url}" for queues, url in trio.stores.items())
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")
    }
    return subprocess.run(
        [str(HEADRACE), *arguments],
        cwd=folder,
        env=environment | {"HEADRACE_URL": trio.url, "HEADRACE_STORES": stores},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_commands_show_the_rest_and_name_the_store_that_is_away(
    trio: Trio, tmp_path: Path
) -> None:
    engine = open_engine(trio.url, stores=trio.stores)
    await engine.open()
    [here, there] = [await enqueue(engine, queue=queue) for queue in ("default", "mail")]
    await engine.close()
    both = command(trio, tmp_path, "jobs", "list")
    assert here in both.stdout
    assert there in both.stdout
    assert both.stderr == ""
    trio.postgres.kill()
    listed = command(trio, tmp_path, "jobs", "list")
    assert listed.returncode == 0, listed.stderr
    assert here in listed.stdout
    assert there not in listed.stdout
    assert "note: the store 'mail' (postgresql://" in listed.stderr
    doctor = command(trio, tmp_path, "doctor")
    assert doctor.returncode == 1, doctor.stderr
    assert "the store 'mail'" in doctor.stdout
    why = command(trio, tmp_path, "jobs", "why", there)
    assert why.returncode == 3
    assert "may be in one that does not: the store 'mail'" in why.stderr
    assert "no worker" in command(trio, tmp_path, "jobs", "why", here).stdout.lower()
    # An address that is typed is that of one store.
    alone = command(trio, tmp_path, "jobs", "list", "--url", trio.url)
    assert here in alone.stdout
    assert alone.stderr == ""


async def test_pages_and_the_api_go_on_and_tell_it(trio: Trio) -> None:
    app = headrace.App(settings=Settings(url=trio.url, stores=trio.stores))
    async with app:
        [here, there] = [await enqueue(app.engine, queue=queue) for queue in ("default", "mail")]
        async with client_of(app) as client:
            trio.postgres.kill()
            listed = (await client.get("/jobs")).json()
            assert [job["job_id"] for job in listed["jobs"]] == [here]
            summary = (await client.get("/summary")).text
            assert "the store 'mail'" in summary
            page = (await client.get("/ui/")).text
            assert "its jobs are not shown and none of them starts" in page.lower()
            missing = await client.get(f"/jobs/{there}")
            assert missing.status_code == 503
            assert "the store 'mail'" in missing.text


def test_stores_are_read_from_text_a_table_and_code(tmp_path: Path) -> None:
    text = "emails=postgresql://a,b/db?x=1, media-*=redis://c:1/0"
    expected = {"emails": "postgresql://a,b/db?x=1", "media-*": "redis://c:1/0"}
    assert load(environment={"HEADRACE_STORES": text}, folder=tmp_path).stores == expected
    (tmp_path / "headrace.toml").write_text('[stores]\nemails = "sqlite:///e.db"\n')
    assert load(environment={}, folder=tmp_path).stores == {"emails": "sqlite:///e.db"}
    assert load(environment={}, folder=tmp_path, stores={}).stores == {}


@pytest.mark.parametrize("text", ["emails", "emails=", "=redis://a", "a=redis://a,a=redis://b"])
def test_stores_that_cannot_be_read_are_refused_without_their_addresses(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match="HEADRACE_STORES") as error:
        load(environment={"HEADRACE_STORES": text}, folder=tmp_path)
    assert "redis://" not in str(error.value).replace("redis://host", "")
