"""What goes wrong with TLS, with what to do about it."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from headrace.errors import InvalidSetting

_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_EXPIRED = 10
_OF_CLIENT = "Name a certificate that it accepts as sslcert and sslkey in HEADRACE_URL."
_FILES_TO_CHECK = "Check the files that sslrootcert, sslcert and sslkey in HEADRACE_URL name."
# By words of the driver or of the server.
_REMEDIES = {
    "rejected SSL upgrade": (
        "It does not speak TLS: set ssl = on there, or sslmode=disable in HEADRACE_URL."
    ),
    "client certificate": _OF_CLIENT,
    "no encryption": "It asks for TLS: use sslmode=verify-full in HEADRACE_URL.",
}


def check_files(dsn: str) -> None:
    """Raise `InvalidSetting` for a file of the URL that cannot be read. The driver would not say
    which, and it would look as if the server could not be reached.
    """
    parameters = parse_qs(urlsplit(dsn).query)
    for name in _FILES:
        for path in parameters.get(name, ()):
            try:
                with Path(path).open("rb"):
                    pass
            except OSError as error:
                raise InvalidSetting(
                    f"{name} in HEADRACE_URL names {path!r}, which cannot be read: "
                    f"{error.strerror}. Correct the path, or the rights to the file."
                ) from None


def remedy_for(error: BaseException) -> str | None:
    """Return what to do if one side does not accept the other, which trying again does not change;
    None for all other errors.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return _remedy_for_certificate(error)
    if isinstance(error, ssl.SSLError):
        return _OF_CLIENT if "ALERT" in (error.reason or "") else _FILES_TO_CHECK
    text = str(error)
    return next((remedy for words, remedy in _REMEDIES.items() if words in text), None)


def _remedy_for_certificate(error: ssl.SSLCertVerificationError) -> str:
    if "mismatch" in error.verify_message:
        return "Use the host name in HEADRACE_URL that the certificate is for."
    if error.verify_code == _EXPIRED:
        return "Renew the certificate of the server, or correct the clock of this machine."
    return "Name the authority that signed its certificate as sslrootcert in HEADRACE_URL."
