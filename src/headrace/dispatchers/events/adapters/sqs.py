"""Amazon SQS, standard and FIFO queues, and services that speak its protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from headrace.dispatchers.events.adapter import Message, QueueAdapter, driver_for
from headrace.errors import InvalidSetting
from headrace.tracing.carrier import FIELDS

with driver_for("SQS", "sqs"):
    from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
    from aiobotocore.session import get_session  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

log = logging.getLogger("headrace.events")

# The service takes no more in one call.
AT_ONCE = 10
# Its calls take long: the first messages should not wait for so many others.
MOST = 100
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class SqsAdapter(QueueAdapter):
    """Receives from one queue.

    Credentials come from where AWS tools look for them, if not given. A message that is not
    deleted within `visibility_seconds` is delivered again.
    """

    name = "sqs"

    def __init__(
        self,
        *,
        queue_url: str,
        endpoint_url: str | None = None,
        region: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        batch_size: int = 100,
        wait_seconds: int = 5,
        visibility_seconds: int = 60,
    ) -> None:
        if not 0 <= wait_seconds <= 20:
            raise InvalidSetting(f"wait_seconds must be between 0 and 20, got {wait_seconds}")
        self._queue_url = queue_url
        self._queue = queue_url.rstrip("/").rpartition("/")[2]
        self._settings: dict[str, Any] = {
            "region_name": region,
            "endpoint_url": endpoint_url,
            "aws_access_key_id": access_key_id,
            "aws_secret_access_key": secret_access_key,
            "config": AioConfig(
                connect_timeout=10,
                read_timeout=wait_seconds + 20,
                # The dispatcher tries again by itself.
                retries={"mode": "standard", "max_attempts": 2},
            ),
        }
        self._batch_size = min(batch_size, MOST)
        self._wait_seconds = wait_seconds
        self._visibility_seconds = visibility_seconds
        self._client: Any = None
        self._stack = AsyncExitStack()

    async def connect(self) -> None:
        """Open a session, and see that the queue is there."""
        context = get_session().create_client("sqs", **self._settings)
        self._client = await self._stack.enter_async_context(context)
        await self._client.get_queue_attributes(
            QueueUrl=self._queue_url, AttributeNames=["QueueArn"]
        )

    async def disconnect(self) -> None:
        """Leave. What is not deleted comes back when its time is over."""
        stack, self._stack, self._client = self._stack, AsyncExitStack(), None
        await stack.aclose()

    async def receive(self) -> AsyncIterator[Sequence[Message]]:
        """Messages, as many as there are up to a batch."""
        while True:
            batch = await self._ask(self._wait_seconds)
            while len(batch) % AT_ONCE == 0 and 0 < len(batch) < self._batch_size:
                more = await self._ask(0)
                if not more:
                    break
                batch += more
            if batch:
                yield batch

    async def complete(self, messages: Sequence[Message]) -> None:
        """Delete them."""
        await self._each_ten(messages, "delete_message_batch")

    async def abandon(self, messages: Sequence[Message]) -> None:
        """Make them visible at once."""
        await self._each_ten(messages, "change_message_visibility_batch", VisibilityTimeout=0)

    async def lag(self) -> int | None:
        """What the queue holds, as far as the service can tell."""
        if self._client is None:
            return None
        try:
            answer = await self._client.get_queue_attributes(
                QueueUrl=self._queue_url, AttributeNames=list(COUNTS)
            )
        except (BotoCoreError, ClientError):
            return None
        return sum(int(answer["Attributes"].get(name, 0)) for name in COUNTS)

    async def _ask(self, wait: int) -> list[Message]:
        if self._client is None:
            raise ConnectionError("not connected to SQS; call connect() first")
        answer = await self._client.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=min(AT_ONCE, self._batch_size),
            WaitTimeSeconds=wait,
            VisibilityTimeout=self._visibility_seconds,
            AttributeNames=["SentTimestamp", "SequenceNumber"],
            MessageAttributeNames=list(FIELDS),
        )
        return [self._message(each) for each in answer.get("Messages", [])]

    async def _each_ten(self, messages: Sequence[Message], verb: str, **more: int) -> None:
        client = self._client
        if client is None:
            return  # they come back when their time is over
        calls = []
        for start in range(0, len(messages), AT_ONCE):
            entries = [
                {"Id": str(number), "ReceiptHandle": each.receipt, **more}
                for number, each in enumerate(messages[start : start + AT_ONCE])
            ]
            calls.append(getattr(client, verb)(QueueUrl=self._queue_url, Entries=entries))
        for answer in await asyncio.gather(*calls):
            for failed in answer.get("Failed", []):
                # Its time was over, so somebody else has it by now.
                log.info("SQS %s: %s", verb, failed.get("Code", failed))

    def _message(self, received: dict[str, Any]) -> Message:
        about = received.get("Attributes", {})
        sent_along = received.get("MessageAttributes")
        sent = about.get("SentTimestamp")
        return Message(
            body=received["Body"].encode("utf-8", "surrogatepass"),
            topic=self._queue,
            key=f"sqs:{self._queue}:{received['MessageId']}",
            offset=about.get("SequenceNumber") or received["MessageId"],
            sent_at=None if sent is None else int(sent) / 1_000,
            receipt=received["ReceiptHandle"],
            headers=None if sent_along is None else _values(sent_along),
        )


def _values(attributes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: each.get("StringValue") for name, each in attributes.items()}
