"""From the setting `artifacts` to a store: a folder, or `s3://bucket/prefix?endpoint=…`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from headrace.artifacts.local import LocalFolder
from headrace.artifacts.names import check_name
from headrace.artifacts.s3 import S3Bucket
from headrace.artifacts.store import ArtifactStore
from headrace.errors import InvalidName, InvalidSetting

FORMS = "a folder, or s3://bucket/prefix?endpoint=https://host:port&region=name"
PARAMETERS = ("endpoint", "region", "path_style")
PREFIX_BYTES = 250

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")


class S3Address(msgspec.Struct, frozen=True):
    """Where a bucket is. Who may use it is in the environment, never here."""

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = True


def open_store(setting: str | Path) -> ArtifactStore:
    """Make the store of a setting. Nothing is connected until it is used."""
    text = str(setting)
    scheme, separator, _ = text.partition("://")
    if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*", scheme):
        return ArtifactStore(LocalFolder(text))
    match scheme.lower():
        case "file":
            return ArtifactStore(LocalFolder(unquote(urlsplit(text).path)))
        case "s3":
            address = parse_s3(text)
            return ArtifactStore(
                S3Bucket(
                    bucket=address.bucket,
                    prefix=address.prefix,
                    endpoint=address.endpoint,
                    region=address.region,
                    path_style=address.path_style,
                )
            )
    raise InvalidSetting(f"artifacts has the unknown scheme {scheme[:20]!r}; use {FORMS}")


def parse_s3(url: str) -> S3Address:
    """Read the URL of a bucket. Errors do not repeat what may be secret."""
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidSetting(f"artifacts is an s3 URL that cannot be read; use {FORMS}") from None
    if "@" in parts.netloc:
        raise InvalidSetting(
            "artifacts has credentials in its URL; take them out, and set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY instead"
        )
    if not _BUCKET.fullmatch(parts.netloc):
        raise InvalidSetting(
            f"artifacts has the bucket {parts.netloc[:70]!r}; use 3 to 63 small letters, digits, "
            '"-" and "."'
        )
    for name, _ in given:
        if name not in PARAMETERS or [each for each, _ in given].count(name) > 1:
            raise InvalidSetting(
                f"artifacts has the parameter {name[:40]!r} that cannot be used, or has it twice; "
                f"known are {', '.join(PARAMETERS)}"
            )
    values = dict(given)
    return S3Address(
        bucket=parts.netloc,
        prefix=_prefix(unquote(parts.path)),
        endpoint=_endpoint(values.get("endpoint")),
        region=values.get("region") or None,
        path_style=_flag(values.get("path_style", "true")),
    )


def _prefix(path: str) -> str:
    prefix = path.strip("/")
    try:
        if prefix:
            check_name(prefix)
    except InvalidName:
        raise InvalidSetting(
            f"artifacts has the prefix {ascii(prefix)[:60]} that cannot be used; leave out empty "
            'parts and ".."'
        ) from None
    if len(prefix.encode()) > PREFIX_BYTES:
        raise InvalidSetting(f"artifacts has a prefix of more than {PREFIX_BYTES} bytes")
    return prefix


def _endpoint(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        ours = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        ours = None
    if not ours or "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidSetting(
            "artifacts has an endpoint that cannot be used; use https://host:port without "
            "credentials and parameters"
        )
    return url.rstrip("/")


def _flag(text: str) -> bool:
    match text.lower():
        case "true" | "1" | "yes":
            return True
        case "false" | "0" | "no":
            return False
    raise InvalidSetting(f"artifacts has path_style={text[:20]!r}; use true or false")
