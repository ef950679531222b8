"""Which evaluations a folder holds, and what they are called: as short as tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorum.evals.folder import MANIFEST, EvalFolder, merged
from quorum.evals.paths import check_folder
from quorum.evals.records import Asked, Manifest, Record
from quorum.knowledge.errors import ConfigurationError


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


def is_evaluation(folder: Path) -> bool:
    """Whether a folder holds an evaluation, or several.

    Raises:
        ConfigurationError: There is no such folder.
    """
    return (members_of(folder)[0] / MANIFEST).is_file()


@dataclass(frozen=True)
class Opened:
    """An evaluation that was read, its shards put together.

    Attributes:
        folder: As it was named.
        records: By id.
        places: The folder that holds a question's run, by id: ``folder`` itself, or a shard in it.
    """

    folder: Path
    manifest: Manifest
    records: Mapping[str, Record]
    places: Mapping[str, Path]

    @property
    def asked(self) -> dict[str, Asked]:
        return {item.id: item for item in self.manifest.asked}


def open_evaluation(folder: Path) -> Opened:
    """Read an evaluation: its own folder, or one whose subfolders are the shards of one evaluation.

    Raises:
        ConfigurationError: The folder holds no evaluation, a damaged one, or several.
    """
    members = members_of(folder)
    found = list(merged(members))
    if len(found) > 1:
        listed = ", ".join(path.name for path in members[:5])
        raise ConfigurationError(
            f"{folder} holds {len(found)} evaluations.",
            hint=f"Name one of them, or a folder with the shards of one: {listed}.",
        )
    ((manifest, records, _),) = found
    places = {item.id: member for member in members for item in EvalFolder(member).manifest().asked}
    return Opened(folder, manifest, records, places)


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
