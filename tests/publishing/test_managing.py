"""Destinations: by API, Client, command line and file; secrets shown once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import InvalidInput, InvalidSetting, UnknownDestination
from headrace.client import Client
from headrace.server.listen import listening
from tests.cli.conftest import Cli
from tests.publishing.conftest import PROCESSED, publishing, work
from tests.publishing.receiver import Answer, Receiver

URL = "https://crm.example.com/hooks"
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


async def test_the_same_verbs_over_http(local: headrace.App, receiver: Receiver) -> None:
    async with listening(local, host="127.0.0.1", port=0) as url, Client(url) as client:
        [event_type] = await client.event_types()
        assert (event_type.name, event_type.summary) == (PROCESSED, "A document is searchable.")
        made = await client.put_destination("crm", "webhook", {"url": receiver.url})
        assert (made.secret or "").startswith("whsec_")
        assert (await client.destination("crm")).secrets == 1
        assert (await client.rotate_destination("crm")).secret != made.secret
        assert not (await client.enable_destination("crm", False)).enabled
        await client.enable_destination("crm")
        job = await client.test_destination("crm")
        await work(local)
        assert (await client.get(job.id)).result == "delivered"
        assert receiver.requests[0].event["type"] == "headrace.test.v1"
        assert receiver.requests[0].verified(made.secret or "")
        # A change keeps the secrets, and shows none.
        changed = await client.put_destination("crm", "webhook", {"url": URL}, types=["a.v1"])
        assert (changed.secret, changed.secrets) == (None, 2)
        await client.remove_destination("crm")
        with pytest.raises(UnknownDestination, match="crm"):
            await client.destination("crm")
        with pytest.raises(InvalidInput, match="topic"):
            await client.put_destination("log", "kafka", {})
        audit = str((await client.audit()).entries)
        assert "destination.rotate" in audit
        assert "whsec_" not in audit


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("webhok", {}, "webhook"),
        ("webhook", {}, "url"),
        ("webhook", {"url": "ftp://x/"}, "url"),
        ("webhook", {"url": "https://ada:secret@x/"}, "url"),
        ("webhook", {"url": URL, "timeout": 0}, "timeout"),
        ("webhook", {"url": URL, "retry": 1}, "retry"),
        ("kafka", {"topic": "t", "security_protocol": "TLS"}, "security_protocol"),
        ("redis_streams", {"stream": "s", "max_length": 0}, "max_length"),
    ],
)
async def test_what_cannot_be_used_is_refused(
    local: headrace.App, kind: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSetting, match=words) as refused:
        await local.put_destination("crm", kind, options)
    assert "secret@" not in str(refused.value)
    assert await local.destinations() == []


async def test_other_refusals(local: headrace.App) -> None:
    wrong: list[dict[str, Any]] = [
        {"types": []},
        {"types": ["Document.*"]},
        {"retries": -1},
        {"secret": "whsec_c2hvcnQ="},
    ]
    for given in wrong:
        with pytest.raises(InvalidInput) as refused:
            await local.put_destination("crm", "webhook", {"url": URL}, **given)
        assert "c2hvcnQ" not in str(refused.value)
    with pytest.raises(InvalidInput, match="webhooks"):
        await local.put_destination("log", "kafka", {"topic": "t"}, secret=SECRET)
    await local.put_destination("crm", "webhook", {"url": URL}, secret=SECRET)
    with pytest.raises(InvalidSetting, match="exists already"):
        await local.put_destination("crm", "webhook", {"url": URL}, replace=False)


FILE = """destinations:
  crm:
    kind: webhook
    types: [document.*]
    options:
      url: https://crm.example.com/hooks
      timeout: 5
    secret: ${CRM_SECRET}
  log:
    kind: kafka
    options: {topic: events, sasl_password: "${KAFKA_PASSWORD}"}
"""


async def test_a_file_is_applied(
    local: headrace.App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "destinations.yaml"
    path.write_text(FILE)
    with pytest.raises(InvalidSetting, match=r"CRM_SECRET.*line"):
        await local.apply_destinations(path)
    monkeypatch.setenv("CRM_SECRET", SECRET)
    monkeypatch.setenv("KAFKA_PASSWORD", "very-hidden")
    await local.put_destination("own", "kafka", {"topic": "t"})
    assert await local.apply_destinations(path) == ["crm", "log"]
    assert await local.apply_destinations(path) == []
    views = {each.name: each for each in await local.destinations()}
    assert list(views) == ["crm", "log", "own"]
    assert views["log"].options["sasl_password"] == "***"
    path.write_text(FILE.replace("timeout: 5", "timeout: 7").partition("  log:")[0])
    assert sorted(await local.apply_destinations(path)) == ["crm", "log"]
    views = {each.name: each for each in await local.destinations()}
    assert list(views) == ["crm", "own"]
    assert views["crm"].options["timeout"] == 7
    path.write_text("destinations:\n  own:\n    kind: kafka\n    options: {topic: t}\n")
    with pytest.raises(InvalidSetting, match="exists already"):
        await local.apply_destinations(path)
    path.write_text("destinations:\n  crm:\n    kind: kafka\n    options: {topc: t}\n")
    with pytest.raises(InvalidSetting, match=r"topc.*line 2"):
        await local.apply_destinations(path)


async def test_the_command_line(tmp_path: Path, receiver: Receiver) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with publishing(url) as app:
        await app.open()
        cli = Cli(tmp_path, url)
        assert PROCESSED in cli("events", "types").out
        added = cli("destinations", "add", "crm", "webhook", f"url={receiver.url}", "timeout=5")
        assert added.out.startswith("whsec_")
        cli("destinations", "add", "crm", "webhook", f"url={receiver.url}", code=2)
        log = ("destinations", "add", "log", "kafka", "topic=t", "sasl_password=${PASSWORD}")
        cli(*log, "--types", "a.*,b.v1", PASSWORD="very-hidden")
        for shown in (
            cli("destinations", "list"),
            cli("destinations", "show", "log", "--json"),
            cli("destinations", "show", "crm"),
        ):
            assert "very-hidden" not in shown.out
            assert added.out.strip() not in shown.out
        cli("destinations", "remove", "log")
        rotated = cli("destinations", "rotate", "crm").out
        assert rotated.startswith("whsec_")
        assert cli("destinations", "rotate", "crm", "--finish").out == ""
        job_id = cli("destinations", "test", "crm").out.strip()
        receiver.answers = [Answer(410)]
        await work(app)
        assert receiver.requests[0].verified(rotated.strip())
        doctor = cli("doctor").out
        assert "destination 'crm' is disabled: the webhook answered 410" in doctor
        assert "1 deliveries of events have failed for good" in doctor
        assert "headrace jobs retry --task headrace.deliver" in doctor
        cli("destinations", "enable", "crm")
        cli("jobs", "retry", job_id)
        await work(app)
        assert (await app.get(job_id)).result == "delivered"
        assert "destination" not in cli("doctor").out
        cli("destinations", "show", "nobody", code=2)
