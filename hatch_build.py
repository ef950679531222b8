"""Link ``quorum/agents`` to ``agents``, and so each floor, when a checkout is installed to be edited.

``agents/planners.py`` is ``quorum.agents.planners``. The wheel maps the folders (``pyproject.toml``). An
editable install needs links, which Python, pytest, mypy, import-linter and editors follow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLOORS = ("agents", "evals", "graph", "knowledge", "tools")


class FloorLinks(BuildHookInterface[Any]):
    """Hatchling's custom build hook of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Make the links that are missing, in an editable install only.

        Raises:
            RuntimeError: A file or folder of that name is in the way, or the system refuses links.
        """
        if version != "editable":
            return
        for floor in FLOORS:
            link, target = Path(self.root, "quorum", floor), Path("..", floor)
            if link.is_symlink() and link.readlink() == target:
                continue
            try:
                link.symlink_to(target, target_is_directory=True)
            except OSError as error:
                why = f"Cannot make the link {link.name} in quorum/: {error.strerror or error}."
                raise RuntimeError(f"{why} Remove what is in its place, or allow links.") from error
