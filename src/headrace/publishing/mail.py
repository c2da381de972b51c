"""Alerts by e-mail: SMTP, with TLS from the beginning (`tls`), after STARTTLS, or without."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import format_datetime

from headrace.publishing.destinations import EmailOptions
from headrace.publishing.events import PublishedEvent
from headrace.publishing.notice import notice_of
from headrace.publishing.sender import DeliveryFailed, Sender, Trace
from headrace.version import __version__

LONGEST_SUBJECT = 200


class EmailSender(Sender):
    """Sends one message for each event, in a connection of its own: alerts are rare."""

    async def open(self) -> None:
        """Nothing is kept open."""

    async def close(self) -> None:
        """Nothing is kept open."""

    async def send(self, event: PublishedEvent, body: bytes, trace: Trace) -> None:
        """Send a message. It carries the same id whenever it is sent again. Mail has no place for
        a trace.
        """
        options: EmailOptions = self.destination.typed_options
        message = make_message(options, event)
        try:
            await asyncio.to_thread(_send, options, message)
        except (OSError, smtplib.SMTPException) as error:
            text = f"{type(error).__name__}: {error}"
            raise DeliveryFailed(f"the mail server did not take it: {text[:300]}") from None


def make_message(options: EmailOptions, event: PublishedEvent) -> EmailMessage:
    """Return the message of an event, as plain text."""
    notice = notice_of(event)
    message = EmailMessage()
    title = "".join(each if each.isprintable() else " " for each in notice.title)
    message["Subject"] = title[:LONGEST_SUBJECT]
    message["From"] = options.sender
    message["To"] = ", ".join(options.to)
    message["Date"] = format_datetime(event.time)
    message["Message-ID"] = f"<{event.id}@headrace>"
    # Notices of one episode are shown together, and nobody's vacation replies to them.
    message["References"] = f"<{notice.episode or event.id}@headrace>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Mailer"] = f"headrace/{__version__}"
    message.set_content("\n".join([notice.title, "", *notice.lines]) + "\n")
    return message


def _send(options: EmailOptions, message: EmailMessage) -> None:
    context = ssl.create_default_context(cafile=options.ca_file)
    connection: smtplib.SMTP
    if options.security == "tls":
        connection = smtplib.SMTP_SSL(
            options.host, options.port, timeout=options.timeout, context=context
        )
    else:
        connection = smtplib.SMTP(options.host, options.port, timeout=options.timeout)
    with connection:
        if options.security == "starttls":
            connection.starttls(context=context)
        if options.username is not None:
            connection.login(options.username, options.password or "")
        connection.send_message(message)
