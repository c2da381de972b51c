"""Files of certificates, as options name them."""

from __future__ import annotations

import ssl

from headrace.errors import InvalidSetting


def tls_context(
    ca_file: str | None, certificate_file: str | None, key_file: str | None
) -> ssl.SSLContext:
    """How to know the broker, and how to be known to it. The system's authorities by default."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if certificate_file is not None:
            context.load_cert_chain(certificate_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(f"the TLS files cannot be used: {error}") from None
    return context
