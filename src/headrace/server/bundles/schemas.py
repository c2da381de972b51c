"""The schemas of what bundles take and return, for the API document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from headrace.server.bundles.endpoint import references
from headrace.server.bundles.route import BundleRoute


def bundle_schemas(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Return the schemas of those routes that are of bundles, each named after its bundle."""
    kinds: dict[str, list[Any]] = {}
    for route in routes:
        if isinstance(route, BundleRoute) and route.served is not None:
            kinds.setdefault(route.loaded.bundle.name, []).extend(route.served.kinds())
    found: dict[str, Any] = {}
    for name, used in kinds.items():
        _, schemas = msgspec.json.schema_components(used, ref_template=references(name))
        found |= {f"{name}.{kind}": schema for kind, schema in schemas.items()}
    return found
