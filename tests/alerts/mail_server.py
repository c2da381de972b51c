"""A real SMTP server on loopback: with TLS, STARTTLS and a login where a test asks for them."""

from __future__ import annotations

import ssl
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "headrace", "pass word!"


class MailServer:
    """Keeps what it takes. `refuse`: answers so many messages with an error first."""

    def __init__(self, *, security: str = "none", login: bool = False) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.logins: list[str] = []
        self.refuse = 0
        self._security = security
        self._login = login
        self._controller: Controller | None = None

    @property
    def port(self) -> int:
        assert self._controller is not None
        return int(self._controller.server.sockets[0].getsockname()[1])

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
                "auth_required": True,
                "auth_require_tls": self._security == "starttls",
            }
        self._controller = _Controller(
            self,
            hostname="127.0.0.1",
            port=0,
            ssl_context=context if self._security == "tls" else None,
            **more,
        )
        self._controller.start()

    def stop(self) -> None:
        if self._controller is not None:
            self._controller.stop(no_assert=True)
            self._controller = None

    def _authenticate(self, server: Any, session: Any, envelope: Any, kind: str, data: Any) -> Any:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        right = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=right)

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        if self.refuse:
            self.refuse -= 1
            return "451 try again"
        content = envelope.content
        assert isinstance(content, bytes)
        self.messages.append(message_from_bytes(content, policy=policy.default))
        self.recipients.append([str(each) for each in envelope.rcpt_tos])
        return "250 taken"


class _Controller(Controller):
    """One that finds a free port by itself."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
