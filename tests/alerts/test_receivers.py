"""Slack, Discord, webhooks and mail: what real receivers get, and what nobody sees."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

import headrace
from headrace.clock import Clock
from headrace.errors import InvalidSetting
from headrace.model.alerts.notice import ALERT_TYPE
from headrace.model.job import Job
from headrace.model.status import Status
from headrace.publishing.destinations import EmailOptions, convert_options
from headrace.publishing.tasks import ALERTS
from tests.alerts.conftest import an_app
from tests.alerts.mail_server import PASSWORD, USER, MailServer
from tests.publishing.receiver import Answer, Receiver
from tests.support.tls import Authority

FROM, TO = "headrace@example.com", ["ops@example.com", "ada@example.com"]


@pytest.fixture
async def app(tmp_path: Path, clock: Clock) -> AsyncIterator[headrace.App]:
    async with an_app(f"sqlite:///{tmp_path}/alerts.db", clock, tmp_path) as app:
        yield app


async def send_test(app: headrace.App, name: str) -> Job:
    """Send a test alert, and return the job after it was delivered, or was not."""
    job = await app.test_receiver(name)
    await headrace.JobOrchestrator(app, queues=[ALERTS]).run_until_idle()
    return await app.get(job.id)


async def test_slack(app: headrace.App, receiver: Receiver) -> None:
    await app.put_destination("ops", "slack", {"url": receiver.url})
    await app.put_alert_rule("long", "queue_length", "ops", above=0, summary="<@here> & more")
    await app.enqueue("fine")
    loop = app.alert_loop()
    await loop.evaluator.round()
    await headrace.JobOrchestrator(app, queues=[ALERTS]).run_until_idle()
    [request] = receiver.requests
    text = msgspec.json.decode(request.body)["text"]
    # What people write must not mention anybody.
    assert text.startswith("*[warning] &lt;@here&gt; &amp; more*\nqueue 'mail' has 1 pending job")
    assert "Rule long (queue_length)." in text
    assert "webhook-signature" not in request.headers
    assert request.headers["content-type"] == "application/json"


async def test_discord(app: headrace.App, receiver: Receiver) -> None:
    await app.put_destination("chat", "discord", {"url": receiver.url})
    assert (await send_test(app, "chat")).status is Status.COMPLETED
    body = msgspec.json.decode(receiver.requests[0].body)
    assert body["content"].startswith("**[test] a test of receiver 'chat'")
    assert body["allowed_mentions"] == {"parse": []}


async def test_a_webhook_is_signed(app: headrace.App, receiver: Receiver) -> None:
    made = await app.put_destination("hook", "webhook", {"url": receiver.url})
    assert made.secret is not None
    assert (await send_test(app, "hook")).status is Status.COMPLETED
    event = receiver.requests[0].verified(made.secret)
    assert (event["type"], event["data"]["status"]) == (ALERT_TYPE, "test")


async def test_the_address_of_a_chat_is_a_secret(
    app: headrace.App, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = receiver.url.replace("/hook", "/services/T000/B000/topsecret")
    for kind in ("slack", "discord"):
        receiver.answers = [Answer(500)]
        made = await app.put_destination("ops", kind, {"url": url})
        job = await send_test(app, "ops")
        assert job.status is Status.FAILED
        shown = await app.destination("ops")
        assert shown.options["url"] == f"http://127.0.0.1:{receiver.port}/***"
        for text in (repr(made), repr(shown), repr(job), str(job.to_dict()), caplog.text):
            assert "topsecret" not in text


async def test_what_takes_alerts_takes_nothing_else(app: headrace.App) -> None:
    options = {"url": "https://hooks.example.com/x"}
    made = await app.put_destination("ops", "slack", options)
    assert made.types == [ALERT_TYPE]
    with pytest.raises(InvalidSetting, match="slack takes alerts alone"):
        await app.put_destination("ops", "slack", options, types=["document.*"])


@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
async def test_mail(app: headrace.App, tmp_path: Path, security: str) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    server = MailServer(security=security, login=security != "none")
    server.start(certificate, key)
    try:
        login = {"username": USER, "password": PASSWORD} if security != "none" else {}
        options = {
            "host": "localhost",
            "port": server.port,
            "sender": FROM,
            "to": TO,
            "security": security,
            "ca_file": str(authority.file),
            **login,
        }
        made = await app.put_destination("mail", "email", options)
        assert PASSWORD not in repr(made)
        assert PASSWORD not in str(made.options)
        server.refuse = 0
        job = await send_test(app, "mail")
        assert job.status is Status.COMPLETED, job.error
        [message] = server.messages
        assert message["Subject"].startswith("[test] a test of receiver 'mail'")
        assert (message["From"], message["To"]) == (FROM, ", ".join(TO))
        assert server.recipients == [TO]
        assert message["Auto-Submitted"] == "auto-generated"
        assert "alerts arrive here" in message.get_content()
        assert set(server.logins) == ({USER} if login else set())
        if login:
            await app.put_destination("mail", "email", options | {"password": "wrong one"})
            job = await send_test(app, "mail")
            assert job.status is Status.FAILED
            assert "the mail server did not take it" in str(job.error)
            assert "wrong one" not in str(job.to_dict())
    finally:
        server.stop()


async def test_mail_over_a_connection_that_cannot_be_trusted_is_not_sent(
    app: headrace.App, tmp_path: Path
) -> None:
    certificate, key = Authority(tmp_path).issue("localhost")
    server = MailServer(security="starttls")
    server.start(certificate, key)
    try:
        options = {"host": "localhost", "port": server.port, "sender": FROM, "to": TO}
        await app.put_destination("mail", "email", options)
        job = await send_test(app, "mail")
        assert job.status is Status.FAILED
        assert "CERTIFICATE_VERIFY_FAILED" in str(job.error)
        assert server.messages == []
    finally:
        server.stop()


async def test_a_mail_server_that_is_down_gets_it_when_it_is_back(
    app: headrace.App, clock: Clock
) -> None:
    server = MailServer()
    server.start()
    options = {"host": "127.0.0.1", "port": server.port, "sender": FROM, "to": TO}
    await app.put_destination("mail", "email", options | {"security": "none"})
    await app.put_alert_rule("long", "queue_length", "mail", above=0, severity="critical")
    server.stop()
    await app.enqueue("fine")
    orchestrator = headrace.JobOrchestrator(app, queues=[ALERTS])
    await app.alert_loop().evaluator.round()
    await orchestrator.run_until_idle()
    server.start()
    server.refuse = 1
    try:
        for _ in range(3):
            clock.advance(30)
            await orchestrator.run_until_idle()
        [message] = server.messages
        assert message["Subject"] == "[critical] queue 'mail' has 1 pending job, more than 0"
    finally:
        server.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": []},
        {"to": ["nobody"]},
        {"to": ["a@b.c\nBcc: x@y.z"]},
        {"to": ["a@b.c\n"]},
        {"sender": "Ops <ops@example.com>"},
        {"security": "ssl"},
        {"port": 0},
        {"password_file": "x"},
    ],
)
async def test_options_of_mail_that_make_no_sense(
    app: headrace.App, wrong: dict[str, object]
) -> None:
    options: dict[str, object] = {"host": "localhost", "sender": FROM, "to": TO}
    with pytest.raises(InvalidSetting, match="destination 'mail'"):
        await app.put_destination("mail", "email", options | wrong)


def test_addresses_of_mail_may_be_one_text_where_options_are_typed() -> None:
    options = {"host": "localhost", "sender": FROM, "to": "a@b.c, d@e.f", "port": "25"}
    made = convert_options("email", options, strict=False)
    assert isinstance(made, EmailOptions)
    assert (made.to, made.port) == (["a@b.c", "d@e.f"], 25)
