"""Recipes and connectors of other packages, named by an entry point or as ``package.module:NAME``."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from quorum.knowledge.errors import ConfigurationError

RECIPES, CONNECTORS = "quorum.recipes", "quorum.connectors"
_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@cache
def installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, by name.

    Every installed package is looked at, which takes milliseconds: ask only for a name that is not Quorum's.
    """
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


def origin(point: EntryPoint) -> str:
    """Return the package of an entry point, with its version: ``checked-sql 0.1.0``."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def load(group: str, name: str) -> Any:
    """Import the plug-in of that name, or at that place (``package.module:NAME``); None if there is none.

    Raises:
        ConfigurationError: Several packages have one of that name, or it cannot be imported.
    """
    if _PLACE.fullmatch(name):
        points = [EntryPoint(name, name, group)]
    else:
        points = [point for point in installed(group) if point.name == name]
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        packages = " and ".join(map(origin, points))
        raise ConfigurationError(f"{packages} both have {name!r} ({group}).", hint="Uninstall one of them.")
    module, package = points[0].value.partition(":")[0], origin(points[0])
    try:
        return points[0].load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ConfigurationError(
            f"The plug-in {name!r} of {package} cannot be imported: {why}.",
            hint=f"`python -c 'import {module}'` shows where; a module must be installed or on PYTHONPATH.",
        ) from error
