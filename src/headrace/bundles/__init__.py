"""Bundles: installable applications that add tasks, routes, pages and commands to Headrace.

    bundle = headrace.Bundle("ingest", summary="…", register=register, routes=routes)

A package names its bundle in the entry point group `headrace.bundles`. Importing this module needs
no extra; `Request` needs `headrace[server]`, tables need `headrace[bundles]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.bundles.bundle import Bundle, Page, Tables
from headrace.bundles.file import File
from headrace.bundles.refusal import Refusal
from headrace.bundles.registry import BundleFailure, LoadedBundle
from headrace.bundles.routes import Route, Routes
from headrace.bundles.session import Session
from headrace.bundles.setup import Setup

if TYPE_CHECKING:
    from headrace.bundles.request import BundleRequest as Request
    from headrace.publishing.addresses import is_public

__all__ = [
    "Bundle",
    "BundleFailure",
    "File",
    "LoadedBundle",
    "Page",
    "Refusal",
    "Request",
    "Route",
    "Routes",
    "Session",
    "Setup",
    "Tables",
    "is_public",
]


def __getattr__(name: str) -> Any:
    # A worker has no use for an HTTP library.
    if name == "Request":
        from headrace.bundles.request import BundleRequest  # noqa: PLC0415

        return BundleRequest
    if name == "is_public":
        from headrace.publishing.addresses import is_public  # noqa: PLC0415 - few ask anybody

        return is_public
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
