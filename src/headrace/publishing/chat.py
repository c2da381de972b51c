"""Alerts in Slack and Discord: one message for each, to an incoming webhook of theirs."""

from __future__ import annotations

import msgspec

from headrace.publishing.events import PublishedEvent
from headrace.publishing.notice import notice_of
from headrace.publishing.webhook import WebhookSender

# What Discord takes; Slack takes more.
LONGEST = 2_000
# Three characters have a meaning in texts of Slack: links and mentions begin with <.
_SLACK = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class SlackSender(WebhookSender):
    """Posts to an incoming webhook of Slack, or of what takes the same."""

    def request(self, event: PublishedEvent, body: bytes) -> tuple[dict[str, str], bytes]:
        text = "".join(_SLACK.get(each, each) for each in _text(event, bold="*"))
        return {}, msgspec.json.encode({"text": text})


class DiscordSender(WebhookSender):
    """Posts to a webhook of a channel of Discord. Nobody is mentioned, whatever the text says."""

    def request(self, event: PublishedEvent, body: bytes) -> tuple[dict[str, str], bytes]:
        text = _text(event, bold="**")
        return {}, msgspec.json.encode({"content": text, "allowed_mentions": {"parse": []}})


def _text(event: PublishedEvent, bold: str) -> str:
    notice = notice_of(event)
    text = "\n".join([f"{bold}{notice.title}{bold}", *notice.lines])
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
