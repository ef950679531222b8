"""Which evaluations a folder holds, and what they are called: as short as tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorum.evals.folder import MANIFEST
from quorum.evals.paths import check_folder


def members_of(folder: Path) -> list[Path]:
    """The folder itself if it is an evaluation's, else those of its subfolders that are, by name.

    Where there are none, the folder itself: who reads it says what it lacks.

    Raises:
        ConfigurationError: There is no such folder.
    """
    check_folder(folder, hint="Name the folder that `quorum eval run` wrote (its --out).")
    if (folder / MANIFEST).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}")) or [folder]


def names(evaluations: Sequence[Sequence[Path]]) -> list[str]:
    """A name for each evaluation; shards that are all that lies in one folder have that folder's.

    Args:
        evaluations: The folders of each, one or more (shards).
    """
    homes = [_home([folder.resolve() for folder in members]) for members in evaluations]
    parts = [home.parts for home, _ in homes]
    return [
        _short(own, [other for place, other in enumerate(parts) if place != number])
        + (f" and {more} more" if (more := homes[number][1]) else "")
        for number, own in enumerate(parts)
    ]


def _home(members: Sequence[Path]) -> tuple[Path, int]:
    """The folder that an evaluation is named after, and how many others it has."""
    parent = members[0].parent
    inside = {path.parent for path in parent.glob(f"*/{MANIFEST}")}
    return (parent, 0) if len(members) > 1 and inside == set(members) else (members[0], len(members) - 1)


def _short(own: Sequence[str], others: Sequence[Sequence[str]]) -> str:
    """The last of the parts that no other path ends with."""
    for count in range(1, len(own)):
        if all(own[-count:] != other[-count:] for other in others):
            return "/".join(own[-count:])
    return own[-1]


def shards_of(text: str) -> tuple[tuple[int, ...], int]:
    """The numbers of a manifest's shards, and how many there are: ``1/8, 3/8`` is ((1, 3), 8)."""
    parts = [part.strip().partition("/") for part in text.split(",")]
    return tuple(sorted(int(number) for number, _, _ in parts)), int(parts[0][2])
