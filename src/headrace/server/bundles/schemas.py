"""The schemas of what bundles take and return, for the API document."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI

from headrace.server.bundles.endpoint import references
from headrace.server.bundles.route import BundleRoute


def bundle_schemas(api: FastAPI) -> dict[str, Any]:
    """Return the schemas of all routes of bundles, each named after its bundle."""
    kinds: dict[str, list[Any]] = {}
    for route in api.routes:
        if isinstance(route, BundleRoute) and route.served is not None:
            kinds.setdefault(route.loaded.bundle.name, []).extend(route.served.kinds())
    found: dict[str, Any] = {}
    for name, used in kinds.items():
        _, schemas = msgspec.json.schema_components(used, ref_template=references(name))
        found |= {f"{name}.{kind}": schema for kind, schema in schemas.items()}
    return found
