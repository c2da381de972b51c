"""Webhooks: one POST for each event, signed as Standard Webhooks has it."""

from __future__ import annotations

import email.utils
import time
from urllib.parse import urlsplit

from headrace.errors import MissingDriver, RetryLater
from headrace.publishing.addresses import find_addresses
from headrace.publishing.destinations import Destination
from headrace.publishing.events import PublishedEvent
from headrace.publishing.sender import DeliveryFailed, DestinationGone, Sender, Trace
from headrace.publishing.signature import sign
from headrace.version import __version__

try:
    import httpx
except ModuleNotFoundError as error:
    raise MissingDriver(
        f'webhooks need {error.name}; install it: pip install "headrace[webhooks]"'
    ) from None

# An answer is only looked at to tell people what went wrong.
LONGEST_ANSWER = 16_384
SHOWN = 200
GONE = 410
TRY_LATER = (429, 503)
LONGEST_PAUSE = 86_400.0


class WebhookSender(Sender):
    """Posts events to one URL. A redirect is not followed, nor is a proxy used."""

    def __init__(self, destination: Destination, *, allow_private: bool) -> None:
        super().__init__(destination)
        self._options = destination.typed_options
        self._allow_private = allow_private
        self._transport: httpx.AsyncHTTPTransport | None = None

    async def open(self) -> None:
        # The time limit is for the whole delivery, not for each step of it: see `Deliveries`. Not a
        # client of httpx: that logs every URL, and some are secrets.
        self._transport = httpx.AsyncHTTPTransport(trust_env=False)

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    def request(self, event: PublishedEvent, body: bytes) -> tuple[dict[str, str], bytes]:
        """Return the headers and the content of the request for an event."""
        timestamp = int(time.time())
        signature = sign(event.id, timestamp, body, self.destination.secrets)
        headers = {
            "webhook-id": event.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature,
        }
        return headers, body

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        headers, body = self.request(event, body)
        headers |= {"content-type": "application/json", "user-agent": f"headrace/{__version__}"}
        headers |= trace
        try:
            status, later, text = await self._post(headers, body)
        except httpx.HTTPError as error:
            raise DeliveryFailed(f"the webhook cannot be reached: {_described(error)}") from None
        if 200 <= status < 300:
            return
        answered = f"the webhook answered {status}" + (f": {text}" if text else "")
        if status == GONE:
            raise DestinationGone(answered)
        pause = _seconds(later) if status in TRY_LATER else None
        if pause is not None:
            raise RetryLater(answered, delay=min(pause, LONGEST_PAUSE))
        raise DeliveryFailed(answered)

    async def _post(self, headers: dict[str, str], body: bytes) -> tuple[int, str | None, str]:
        if self._transport is None:
            raise DeliveryFailed("the sender is closed")
        url = urlsplit(self._options.url)
        host = url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await find_addresses(host, port, allow_private=self._allow_private)
        for last, address in ((each is found[-1], each) for each in found):
            # To the address that was checked; the name is for the certificate and the receiver.
            request = httpx.Request(
                "POST",
                httpx.URL(self._options.url).copy_with(host=address),
                headers={**headers, "host": url.netloc},
                content=body,
                extensions={"sni_hostname": host},
            )
            try:
                response = await self._transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if last:
                    raise
                continue
            try:
                text = await _beginning(response)
            finally:
                await response.aclose()
            return response.status_code, response.headers.get("retry-after"), text
        raise DeliveryFailed(f"the host {host} has no address")


async def _beginning(response: httpx.Response) -> str:
    """Return the first words of an answer, whatever it claims to be and however long it is."""
    content = b""
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) >= LONGEST_ANSWER:
            break
    text = content[:LONGEST_ANSWER].decode("utf-8", "replace")[:SHOWN]
    return "".join(each if each.isprintable() else " " for each in text).strip()


def _seconds(later: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header, which may be a date."""
    if later is None:
        return None
    if later.strip().isdecimal():
        return float(later)
    try:
        return max(email.utils.parsedate_to_datetime(later).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _described(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
