"""Events: declared, checked at once, published if and only if the outcome counted."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import msgspec
import pydantic
import pytest

import headrace
from headrace import InvalidArguments, InvalidInput, InvalidName, InvalidSetting, UnknownEventType
from headrace.clock import Clock
from headrace.model.status import Status
from headrace.publishing.events import delivery_id, lane_of, wanted_by
from headrace.testing import override
from tests.publishing import handlers
from tests.publishing.conftest import PROCESSED, Processed, work
from tests.publishing.receiver import Receiver


async def test_a_job_publishes_with_its_outcome(app: headrace.App, receiver: Receiver) -> None:
    @app.task
    async def process(ctx: headrace.Context, document: str) -> str:
        return ctx.publish(PROCESSED, Processed(document, chunks=3), key=document)

    made = await app.put_destination("crm", "webhook", {"url": receiver.url})
    job = await process.options(meta={"traceparent": "00-abc"}).enqueue(document="d1")
    await work(app)
    event_id = (await app.get(job.id)).result
    [request] = receiver.requests
    assert made.secret is not None
    event = request.verified(made.secret)
    assert event.pop("time").endswith("Z")
    assert event == {
        "id": event_id,
        "type": PROCESSED,
        "key": "d1",
        "job_id": job.id,
        "data": {"document": "d1", "chunks": 3},
    }
    published = await app.get(event_id)
    assert (published.task, published.status) == ("headrace.publish", Status.COMPLETED)
    assert (published.queue, published.lane) == ("events", "*:d1")
    assert published.meta == {"traceparent": "00-abc", "follows": job.id}
    delivery = await app.get(published.result["crm"])
    assert (delivery.task, delivery.status) == ("headrace.deliver", Status.COMPLETED)
    assert (delivery.id, delivery.lane) == (delivery_id(event_id, "crm"), "crm:d1")
    assert delivery.meta == {"traceparent": "00-abc", "follows": event_id}


async def test_nothing_is_published_by_an_attempt_that_does_not_count(
    local: headrace.App, receiver: Receiver, clock: Clock
) -> None:
    @local.task(retry=headrace.RetryPolicy(retries=1, base=1.0))
    async def process(ctx: headrace.Context) -> None:
        ctx.publish(PROCESSED, {"document": f"attempt {ctx.attempt}"})
        ctx.publish(PROCESSED, {"document": "failed"}, on="failed")
        if ctx.attempt == 1:
            raise OSError("again")

    await local.put_destination("crm", "webhook", {"url": receiver.url})
    await process.enqueue()
    await work(local)
    assert receiver.requests == []
    clock.advance(2)
    await work(local)
    assert [each.event["data"]["document"] for each in receiver.requests] == ["attempt 2"]


async def test_code_outside_of_jobs_publishes(local: headrace.App, receiver: Receiver) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    event_id = await local.publish(PROCESSED, {"document": "d1"})
    await work(local)
    [event] = [each.event for each in receiver.requests]
    assert (event["id"], event["key"], event["job_id"]) == (event_id, None, None)
    assert event["data"] == {"document": "d1", "chunks": 0}


async def test_from_a_child_process(receiver: Receiver) -> None:
    async with override(handlers.app) as app:
        await app.put_destination("crm", "webhook", {"url": receiver.url})
        job = await handlers.process.enqueue("d1")
        await work(app)
        over = await app.get(job.id)
        assert over.status is Status.COMPLETED, over.error
        event_id, refused = over.result
        assert receiver.ids == [event_id]
        assert "document" in refused


async def test_what_is_not_declared_or_does_not_fit_is_refused_at_once(local: headrace.App) -> None:
    with pytest.raises(UnknownEventType, match=PROCESSED):
        await local.publish("document.procesed.v1", {})
    with pytest.raises(InvalidArguments, match="chunks"):
        await local.publish(PROCESSED, {"document": "d1", "chunks": "many"})
    with pytest.raises(InvalidArguments, match="document"):
        await local.publish(PROCESSED, {})
    with pytest.raises(InvalidArguments, match="plain data"):
        await local.publish(PROCESSED, object())
    with pytest.raises(InvalidInput, match="key"):
        await local.publish(PROCESSED, {"document": "d1"}, key="")
    raised: list[str] = []

    @local.task
    async def process(ctx: headrace.Context) -> None:
        for name, body in (("other.v1", {}), (PROCESSED, {"document": 7})):
            with pytest.raises(InvalidInput) as error:
                ctx.publish(name, body)
            raised.append(str(error.value))

        async def stage() -> None:
            with pytest.raises(InvalidInput, match="in stage 'parsing'"):
                ctx.publish(PROCESSED, {"document": "d1"})

        await ctx.stage("parsing", stage)

    await process.enqueue()
    await work(local)
    assert len(raised) == 2
    assert {job.task for job in (await local.list()).jobs} == {"process"}


@pytest.mark.parametrize(
    "name",
    ["document.processed", "Document.v1", "document.v0", "v1x", "a..v1", "", ".v1", "a b.v1"],
)
def test_the_version_is_part_of_the_name(name: str) -> None:
    with pytest.raises(InvalidName, match=r"document\.processed\.v1"):
        headrace.App("sqlite://").event_type(name, Processed)


def test_types_that_cannot_be_declared() -> None:
    app = headrace.App("sqlite://")
    with pytest.raises(InvalidName, match="reserved"):
        app.event_type("headrace.job.v1", Processed)
    with pytest.raises(InvalidSetting, match=r"msgspec\.Struct"):
        app.event_type("a.v1", object)
    app.event_type("a.v1", Processed)
    app.event_type("a.v1", Processed)
    with pytest.raises(InvalidSetting, match="declared twice"):
        app.event_type("a.v1", dict)


class Priced(pydantic.BaseModel):
    price: float


@dataclasses.dataclass
class Sold:
    number: int
    to: str = "nobody"


async def test_schemas_of_all_kinds_of_models_are_kept(app: headrace.App) -> None:
    app.event_type("shop.priced.v1", Priced)
    app.event_type("shop.sold.v2", Sold, summary="Something was sold.")
    types = {each.name: each for each in await app.event_types()}
    assert list(types) == [PROCESSED, "shop.priced.v1", "shop.sold.v2"]
    assert types[PROCESSED].summary == "A document is searchable."
    assert _properties(types[PROCESSED].schema) == {"document", "chunks"}
    assert _properties(types["shop.priced.v1"].schema) == {"price"}
    assert _properties(types["shop.sold.v2"].schema) == {"number", "to"}
    for event_type, body, data in (
        ("shop.priced.v1", Priced(price=1.5), {"price": 1.5}),
        ("shop.priced.v1", {"price": "2"}, {"price": 2.0}),
        ("shop.sold.v2", Sold(1), {"number": 1, "to": "nobody"}),
    ):
        event_id = await app.publish(event_type, body)
        assert (await app.get(event_id)).args["event"]["data"] == data
    with pytest.raises(InvalidArguments, match="price"):
        await app.publish("shop.priced.v1", {"price": "much"})


def _properties(schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    return set(schema["properties"])


async def test_a_schema_that_changes_under_its_name_is_warned_of(
    local: headrace.App, caplog: pytest.LogCaptureFixture
) -> None:
    await local.event_types()
    async with headrace.App(settings=local.settings) as other:
        other.event_type(PROCESSED, msgspec.defstruct("Processed", [("document", int)]))
        with caplog.at_level(logging.WARNING):
            assert len(await other.event_types()) == 1
    assert "should be a new version" in caplog.text


def test_patterns_of_types() -> None:
    assert wanted_by(["*"], PROCESSED)
    assert wanted_by(["document.*"], PROCESSED)
    assert wanted_by(["a.v1", PROCESSED], PROCESSED)
    assert not wanted_by(["documents.*", "document.processed.v2"], PROCESSED)


def test_the_id_of_a_delivery_is_an_id_in_time_order() -> None:
    event_id = "01a1e83c-0503-7d0b-a290-61c04ae82c40"
    made = delivery_id(event_id, "crm")
    assert made == delivery_id(event_id, "crm") != delivery_id(event_id, "erp")
    assert made[:19] == event_id[:19]
    assert len(made) == 36
    assert made[19] in "89ab"
    assert len(lane_of("crm", "k" * 400)) < 128
    assert lane_of("crm", "k") == "crm:k"


async def test_a_destination_gets_only_the_types_that_it_wants(
    local: headrace.App, receiver: Receiver
) -> None:
    local.event_type("shop.sold.v2", Sold)
    await local.put_destination("shop", "webhook", {"url": receiver.url}, types=["shop.*"])
    await local.publish(PROCESSED, {"document": "d1"})
    wanted = await local.publish("shop.sold.v2", Sold(1))
    await work(local)
    assert receiver.ids == [wanted]


async def test_to_publish_again_by_hand_delivers_nothing_twice(
    local: headrace.App, receiver: Receiver
) -> None:
    await local.put_destination("crm", "webhook", {"url": receiver.url})
    event_id = await local.publish(PROCESSED, {"document": "d1"})
    await work(local)
    await local.retry(event_id)
    await work(local)
    assert receiver.ids == [event_id]
