"""Webhooks: a real receiver that fails, hangs, asks for patience, goes away and comes back."""

from __future__ import annotations

import logging
import time
from email.utils import formatdate

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

import headrace
from headrace.clock import Clock
from headrace.model.job import Job, JobFilter
from headrace.model.status import Status
from headrace.publishing.addresses import is_public
from headrace.publishing.webhook import LONGEST_ANSWER
from tests.publishing.conftest import PROCESSED, work
from tests.publishing.receiver import Answer, Receiver, a_receiver


async def delivery(app: headrace.App, destination: str = "crm") -> Job:
    """The only delivery to a destination."""
    jobs = (await app.list(JobFilter(tasks=("headrace.deliver",)))).jobs
    [found] = [job for job in jobs if job.args["destination"] == destination]
    return found


async def publish(app: headrace.App, document: str = "d1", key: str | None = None) -> str:
    event_id = await app.publish(PROCESSED, {"document": document}, key)
    await work(app)
    return event_id


async def test_the_signature_is_that_of_standard_webhooks(
    local: headrace.App, receiver: Receiver
) -> None:
    made = await local.put_destination("crm", "webhook", {"url": receiver.url})
    assert made.secret is not None
    event_id = await publish(local)
    [request] = receiver.requests
    assert request.verified(made.secret)["id"] == event_id
    assert request.headers["webhook-id"] == event_id
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    # The library finds every change.
    for body, headers in (
        (request.body + b" ", request.headers),
        (request.body, {**request.headers, "webhook-id": "other"}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(made.secret).verify(body, headers)
    other = await local.put_destination("other", "webhook", {"url": receiver.url})
    assert other.secret is not None
    with pytest.raises(WebhookVerificationError):
        request.verified(other.secret)


async def test_during_a_rotation_both_secrets_verify(
    local: headrace.App, receiver: Receiver
) -> None:
    first = (await local.put_destination("crm", "webhook", {"url": receiver.url})).secret
    second = (await local.rotate_destination("crm")).secret
    assert first is not None
    assert second is not None
    await publish(local)
    for secret in (first, second):
        assert receiver.requests[-1].verified(secret)
    assert (await local.rotate_destination("crm", finish=True)).secret is None
    await publish(local)
    assert receiver.requests[-1].verified(second)
    with pytest.raises(WebhookVerificationError):
        receiver.requests[-1].verified(first)


async def test_a_receiver_that_fails_gets_the_same_event_again(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    made = await local.put_destination("crm", "webhook", {"url": receiver.url})
    receiver.answers = [Answer(500), Answer(302, {"location": f"{receiver.url}/other"})]
    event_id = await publish(local)
    for pause in (6, 17):
        job = await delivery(local)
        assert job.status is Status.SCHEDULED
        clock.advance(pause)
        await work(local)
    assert receiver.ids == [event_id] * 3
    assert {request.path for request in receiver.requests} == {"/hook"}  # no redirect is followed
    assert len({request.body for request in receiver.requests}) == 1
    job = await delivery(local)
    assert (job.status, job.attempt) == (Status.COMPLETED, 3)
    assert "answered 302" in str(job.attempts[1].failure)
    assert made.secret is not None
    assert receiver.requests[-1].verified(made.secret)


async def test_a_receiver_that_hangs_is_left_after_its_time_limit(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url, "timeout": 1})
    receiver.answers = [Answer(hang=True)]
    event_id = await publish(local)
    job = await delivery(local)
    assert "did not answer within 1 s" in str(job.attempts[0].failure)
    # On a busy machine one that does not hang may need longer.
    await local.put_destination("crm", "webhook", {"url": receiver.url, "timeout": 30})
    clock.advance(6)
    await work(local)
    assert receiver.ids == [event_id] * 2
    assert (await delivery(local)).status is Status.COMPLETED


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("as_date", [False, True])
async def test_retry_after_is_kept(
    local: headrace.App, receiver: Receiver, clock: Clock, status: int, as_date: bool
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    later = formatdate(time.time() + 900, usegmt=True) if as_date else "900"
    receiver.answers = [Answer(status, {"retry-after": later})]
    await publish(local)
    clock.advance(850)
    await work(local)
    assert len(receiver.requests) == 1
    clock.advance(60)
    await work(local)
    assert len(receiver.requests) == 2
    assert (await delivery(local)).status is Status.COMPLETED


async def test_a_receiver_that_is_gone_is_disabled_and_that_is_said(
    local: headrace.App, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    receiver.answers = [Answer(410)]
    with caplog.at_level(logging.ERROR):
        event_id = await publish(local)
    assert "Destination crm is disabled: the webhook answered 410" in caplog.text
    job = await delivery(local)
    assert (job.status, job.attempt) == (Status.FAILED, 1)
    view = await local.destination("crm")
    assert not view.enabled
    assert "410" in (view.reason or "")
    # Events that come meanwhile are not sent there; the failed one is, when it is asked for.
    await publish(local)
    assert len(receiver.requests) == 1
    await local.retry(job.id)
    await work(local)
    again = await local.get(job.id)
    assert again.status is Status.FAILED
    assert "headrace destinations enable crm" in (again.error or "")
    await local.enable_destination("crm")
    await local.retry(job.id)
    await work(local)
    assert receiver.ids == [event_id] * 2
    assert (await local.get(job.id)).status is Status.COMPLETED


async def test_a_receiver_that_was_down_gets_everything_when_it_is_back(
    local: headrace.App, clock: Clock
) -> None:
    async with a_receiver() as receiver:
        pass  # its port is free again
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    ids = [await publish(local, key="k") for _ in range(3)]
    receiver.requests.clear()
    await receiver.start()
    try:
        for _ in range(3):
            clock.advance(20)
            await work(local)
        assert receiver.ids == ids
    finally:
        await receiver.stop()


async def test_one_that_is_down_holds_up_no_other(local: headrace.App, receiver: Receiver) -> None:
    async with a_receiver() as down:
        await local.put_destination("down", "webhook", {"url": down.url})
    await local.put_destination("up", "webhook", {"url": receiver.url})
    ids = [await publish(local, key="k") for _ in range(3)]
    assert receiver.ids == ids
    jobs = (await local.list(JobFilter(tasks=("headrace.deliver",)))).jobs
    left = [job for job in jobs if job.status is not Status.COMPLETED]
    assert {job.args["destination"] for job in left} == {"down"}
    assert len(left) == 3


async def test_events_of_one_key_stay_in_order_and_others_do_not_wait(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    receiver.answers = [Answer(500)]
    first = await publish(local, key="a")
    second = await publish(local, key="a")
    other = await publish(local, key="b")
    alone = await publish(local)
    assert receiver.ids == [first, other, alone]
    clock.advance(6)
    await work(local)
    assert receiver.ids == [first, other, alone, first, second]


async def test_what_was_never_taken_is_a_failed_job_that_can_be_sent_again(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url}, retries=1)
    receiver.answers = [Answer(500), Answer(500)]
    event_id = await publish(local)
    clock.advance(6)
    await work(local)
    job = await delivery(local)
    assert (job.status, job.attempt, job.max_attempts) == (Status.FAILED, 2, 2)
    assert (await local.bulk("retry", JobFilter(tasks=("headrace.deliver",)))).changed == 1
    await work(local)
    assert (await local.get(job.id)).status is Status.COMPLETED
    assert receiver.ids == [event_id] * 3


async def test_an_answer_without_end_is_not_read(local: headrace.App, receiver: Receiver) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    receiver.answers = [Answer(500, size=500_000_000)]
    await publish(local)
    job = await delivery(local)
    assert "answered 500: xxx" in str(job.attempts[0].failure)
    assert len(str(job.attempts[0].failure)) < 10_000
    assert LONGEST_ANSWER <= receiver.sent < 50_000_000


async def test_private_addresses_are_refused_by_default(
    local: headrace.App, receiver: Receiver
) -> None:
    async with headrace.App(url=local.settings.url, clock=local.clock) as app:
        app.event_type(PROCESSED, dict)
        await app.put_destination("crm", "webhook", {"url": receiver.url})
        await app.put_destination(
            "name", "webhook", {"url": f"http://localhost:{receiver.port}/hook"}
        )
        await app.publish(PROCESSED, {})
        await work(app)
        assert receiver.requests == []
        for name in ("crm", "name"):
            job = await delivery(app, name)
            assert "HEADRACE_ALLOW_PRIVATE_WEBHOOKS" in str(job.attempts[0].failure)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.3.4", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::a00:1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_a_name_is_looked_up_and_goes_along(local: headrace.App, receiver: Receiver) -> None:
    await local.put_destination(
        "crm", "webhook", {"url": f"http://localhost:{receiver.port}/hook?to=a%20b"}
    )
    await publish(local)
    [request] = receiver.requests
    assert request.headers["host"] == f"localhost:{receiver.port}"
    assert request.path == "/hook?to=a%20b"


async def test_a_removed_destination_gets_nothing_more(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    receiver.answers = [Answer(500)]
    await publish(local)
    await local.remove_destination("crm")
    clock.advance(6)
    await work(local)
    job = await delivery(local)
    assert (job.status, job.result) == (
        Status.COMPLETED,
        "dropped: the destination was removed",
    )
    assert len(receiver.requests) == 1


async def test_secrets_are_in_no_log_and_no_error(
    local: headrace.App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_receiver() as down:
        url = f"{down.url}?token=very-hidden"
    made = await local.put_destination("crm", "webhook", {"url": url})
    await publish(local)
    job = await delivery(local)
    assert made.secret is not None
    shown = f"{caplog.text} {job.to_dict()} {await local.destinations()}"
    assert made.secret not in shown
    assert "very-hidden" not in shown
    assert (await local.destination("crm")).options["url"] == f"{down.url}?***"
