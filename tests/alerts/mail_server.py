"""A real SMTP server on loopback: with TLS, STARTTLS and a login where a test asks for them."""

from __future__ import annotations

import ssl
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.support.servers import free_port

USER, PASSWORD = "headrace", "pass word!"


class MailServer:
    """Keeps what it takes. `refuse`: answers so many messages with an error first."""

    def __init__(self, *, security: str = "none", login: bool = False) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.logins: list[str] = []
        self.refuse = 0
        self.port = 0
        self._security = security
        self._login = login
        self._controller: Controller | None = None

    def start(self, certificate: Path | None = None, key: Path | None = None) -> None:
        context = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
        more: dict[str, Any] = {}
        if self._security == "starttls":
            more = {"tls_context": context, "require_starttls": True}
        if self._login:
            more |= {
                "authenticator": self._authenticate,
                "auth_required": self._security == "starttls",
                "auth_require_tls": self._security == "starttls",
            }
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=self.port or free_port(),
            ssl_context=context if self._security == "tls" else None,
            **more,
        )
        self._controller.start()
        self.port = self._controller.port

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop(no_assert=True)
            self._controller = None

    def _authenticate(self, server: Any, session: Any, envelope: Any, kind: str, data: Any) -> Any:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=right, handled=right)

    async def handle_DATA(  # noqa: N802 - the library's name
        self, server: Any, session: Session, envelope: Envelope
    ) -> str:
        if self.refuse:
            self.refuse -= 1
            return "451 try again"
        content = envelope.content
        assert isinstance(content, bytes)
        self.messages.append(message_from_bytes(content, policy=policy.default))
        self.recipients.append([str(each) for each in envelope.rcpt_tos])
        return "250 taken"
