"""Evaluations as `quorum eval run` wrote them, read from their folders: shards put together, and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from quorum.evals.folder import MANIFEST, EvalFolder, merged
from quorum.evals.paths import check_folder
from quorum.evals.records import Asked, Manifest, Record
from quorum.evals.reports.frame import Frame, answered, right
from quorum.evals.reports.statistics import Calibration, calibrate
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError


@dataclass(frozen=True)
class Opened:
    """An evaluation that was read, its shards put together.

    Attributes:
        name: Names it among those reported together: its folder's name.
        folder: As the user named it.
        folders: One per shard.
        records: By id.
        places: By id, the folder of ``folders`` that holds the question's run.
    """

    name: str
    folder: Path
    folders: tuple[Path, ...]
    manifest: Manifest
    records: Mapping[str, Record]
    places: Mapping[str, Path]

    @cached_property
    def frame(self) -> Frame:
        """Return the table of its questions."""
        return Frame(
            ((asked, self.records.get(asked.id)) for asked in self.manifest.asked), self.manifest.metrics
        )

    @property
    def asked(self) -> dict[str, Asked]:
        return {item.id: item for item in self.manifest.asked}

    @property
    def recipe(self) -> str:
        return str(self.manifest.options.get("recipe", ""))

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(str(model) for model in self.manifest.options.get("models") or ())

    @property
    def lacks(self) -> str:
        """Return which shards are not here: ``shard 1, 3 of 3 is missing``; empty if it is whole."""
        parts = [part.partition("/") for part in self.manifest.shard.split(", ")]
        here, whole = {int(number) for number, _, _ in parts}, int(parts[0][2])
        absent = [str(number) for number in range(1, whole + 1) if number not in here]
        return f"shard {', '.join(absent)} of {whole} is missing" if absent else ""

    @property
    def changed_options(self) -> dict[str, Any]:
        """Return the options that are not the default, without recipe and models."""
        usual = RunOptions().as_dict() | {
            "recipe": self.recipe,
            "models": self.manifest.options.get("models"),
        }
        given = self.manifest.options.items()
        return {name: value for name, value in given if name not in usual or usual[name] != value}

    @cached_property
    def calibration(self) -> Calibration | None:
        """Return the calibration of the confidence, over answers known to be right or wrong."""
        known = (it for it in self.frame.records if answered(it) and it.match is not None)
        return calibrate((record.confidence, right(record)) for record in known)

    def run_of(self, id: str) -> Path | None:
        """Return the folder of a question's run; None without one, or if it is outside the evaluation."""
        record = self.records.get(id)
        run = Path(record.run if record else "")
        inside = run.parts and not run.is_absolute() and ".." not in run.parts
        return self.places[id] / run if inside else None


def members_of(folder: Path) -> list[Path]:
    """Return the folder itself if it is an evaluation's, else those of its subfolders that are, by name.

    Without any, return the folder itself: reading it says what it lacks.

    Raises:
        ConfigurationError: There is no such folder.
    """
    check_folder(folder, hint="Name the folder that `quorum eval run` wrote (its --out).")
    if (folder / MANIFEST).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}")) or [folder]


def is_evaluation(folder: Path) -> bool:
    """True if a folder holds an evaluation, or several.

    Raises:
        ConfigurationError: There is no such folder.
    """
    return (members_of(folder)[0] / MANIFEST).is_file()


def open_evaluations(folders: Sequence[Path]) -> tuple[Opened, ...]:
    """Read evaluations in the order in which they are named.

    Args:
        folders: Of evaluations, or folders whose subfolders are evaluations.

    Raises:
        ConfigurationError: A folder holds no evaluation, or shards do not fit together.
    """
    found = list(merged([member for folder in folders for member in members_of(folder)]))
    titles = names([members for _, _, members in found])
    return tuple(
        Opened(name, members[0], tuple(members), manifest, records, _places(manifest, members))
        for name, (manifest, records, members) in zip(titles, found, strict=True)
    )


def _places(manifest: Manifest, folders: Sequence[Path]) -> dict[str, Path]:
    if len(folders) == 1:
        return {asked.id: folders[0] for asked in manifest.asked}
    return {asked.id: folder for folder in folders for asked in EvalFolder(folder).manifest().asked}


def open_evaluation(folder: Path) -> Opened:
    """Read an evaluation: its own folder, or one whose subfolders are the shards of one evaluation.

    Raises:
        ConfigurationError: The folder holds no evaluation, a damaged one, or several.
    """
    found = open_evaluations([folder])
    if len(found) > 1:
        listed = ", ".join(path.name for path in members_of(folder)[:5])
        raise ConfigurationError(
            f"{folder} holds {len(found)} evaluations.",
            hint=f"Name one of them, or a folder with the shards of one: {listed}.",
        )
    return replace(found[0], name=folder.name, folder=folder)


def names(evaluations: Sequence[Sequence[Path]]) -> list[str]:
    """Return the shortest ends of paths that tell evaluations apart: ``monday/run`` and ``friday/run``.

    Shards that are all that lies in one folder have that folder's name, others that of the first.

    Args:
        evaluations: The folders of each, one or more (shards).
    """
    homes = [_home([folder.resolve() for folder in members]).parts for members in evaluations]
    lengths = range(1, max(map(len, homes), default=0) + 1)
    enough = next((n for n in lengths if len({home[-n:] for home in homes}) == len(set(homes))), 1)
    return ["/".join(home[-enough:]) for home in homes]


def _home(members: Sequence[Path]) -> Path:
    parent = members[0].parent
    inside = {path.parent for path in parent.glob(f"*/{MANIFEST}")}
    return parent if len(members) > 1 and inside == set(members) else members[0]
