"""Finds installed bundles by the metadata of their packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from headrace.errors import InvalidSetting
from headrace.installed_bundles import installed
from headrace.suggest import did_you_mean


def find_bundle(name: str) -> EntryPoint:
    """Return the entry point of an installed bundle. Raises `InvalidSetting`, which names the
    nearest one, or both packages if two have this name.
    """
    points = installed().get(name)
    if points is None:
        nothing = "no package with a bundle is installed here"
        known = installed()
        hint = did_you_mean(name, known) if known else nothing
        raise InvalidSetting(f'unknown bundle "{name}"; {hint}')
    if len(points) > 1:
        packages = " and ".join(package_of(point) for point in points)
        raise InvalidSetting(
            f'two bundles are called "{name}", in the packages {packages}; uninstall one of them'
        )
    return points[0]


def package_of(point: EntryPoint) -> str:
    """Return the package that names a bundle."""
    return point.dist.name if point.dist is not None else point.module


def version_of(name: str) -> str | None:
    """Return the version of the package of an installed bundle."""
    points = installed().get(name, ())
    return points[0].dist.version if len(points) == 1 and points[0].dist is not None else None


def summary_of(name: str) -> str:
    """Return what the package of an installed bundle says of itself; imports nothing."""
    points = installed().get(name, ())
    if len(points) != 1 or points[0].dist is None:
        return ""
    metadata = points[0].dist.metadata
    return metadata["Summary"] or ""
