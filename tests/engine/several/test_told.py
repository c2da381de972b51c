"""People are told which store is away: by commands, by the page Now, and over HTTP."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import headrace
from headrace.admin.shown_settings import shown_settings
from headrace.config import Settings, load
from headrace.engine.open import open_engine
from headrace.engine.several.engine import SeveralStores
from headrace.errors import InvalidSetting, StoreUnavailable
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


def test_no_password_is_shown_with_the_settings() -> None:
    secret = "s3cr-et"
    settings = Settings(
        url=f"postgresql://me:{secret}@host/db",
        stores={"mail": f"redis://:{secret}@host", "a": f"postgresql://h/d?password={secret}"},
        api_url=f"https://me:{secret}@host",
    )
    assert secret not in repr(settings)
    assert secret not in str(shown_settings(settings))
    assert "sqlite:///a.db" in repr(Settings(url="sqlite:///a.db"))


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:s3cret@host/db?schema=a",
        "postgresql://me:s3cret@host/db?schema=a,postgresql://me:s3cret@host/db?schema=b",
    ],
)
def test_an_address_in_the_place_of_a_queue_is_not_shown(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as error:
        load(environment={"HEADRACE_STORES": text}, folder=tmp_path)
    assert "s3cret" not in str(error.value)
    with pytest.raises(InvalidSetting, match="address where the name") as error:
        open_engine("sqlite:///a.db", stores={text: "sqlite:///b.db"})
    assert "s3cret" not in str(error.value)


async def test_no_password_is_in_what_is_said_of_a_store_that_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = {"mail": "postgresql://me:s3cret@127.0.0.1:1/db", "x": "redis://:s3cret@127.0.0.1:1/0"}
    engine = open_engine(f"sqlite:///{tmp_path}/a.db", stores=away)
    assert isinstance(engine, SeveralStores)
    await engine.open()
    said = [str(engine.missing), str(engine.members), caplog.text]
    for queue in away:
        with pytest.raises(StoreUnavailable) as error:
            await enqueue(engine, queue=queue)
        said.append(str(error.getrepr(style="short")) + repr(error.value))
    await engine.close()
    assert "127.0.0.1:1" in "".join(said)
    assert "s3cret" not in "".join(said)
