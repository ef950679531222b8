"""Evaluations as `quorum eval run` wrote them, read from their folders: shards put together, and named."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from quorum.evals.folder import MANIFEST, EvalFolder
from quorum.evals.paths import check_folder
from quorum.evals.records import Manifest, PlannedQuestion, Record
from quorum.evals.reports.frame import Frame, answered, right
from quorum.evals.reports.statistics import CalibrationStats, calibrate
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
    def asked(self) -> dict[str, PlannedQuestion]:
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
    def calibration(self) -> CalibrationStats | None:
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
    """Read evaluations in the order in which they are named; a folder that is named twice counts once.

    Shards belong together if they are of one division of the same questions, asked with the same options by
    the same version, and judged by the same rules.

    Args:
        folders: Of evaluations, or folders whose subfolders are evaluations.

    Raises:
        ConfigurationError: A folder holds no evaluation, or shards do not fit together.
    """
    members: dict[Path, Path] = {}
    for folder in (member for each in folders for member in members_of(each)):
        members.setdefault(folder.resolve(), folder)
    manifests = {folder: EvalFolder(folder).manifest() for folder in members.values()}
    groups: dict[str, list[Path]] = {}
    for folder, manifest in manifests.items():
        whole = manifest.shard.endswith("/1")
        groups.setdefault(f"{folder}" if whole else _identity(manifest), []).append(folder)
    shards = [sorted(own, key=lambda folder: _number(manifests[folder])) for own in groups.values()]
    titles = names(shards)
    return tuple(
        _merged(name, {folder: manifests[folder] for folder in own})
        for name, own in zip(titles, shards, strict=True)
    )


def _merged(name: str, shards: Mapping[Path, Manifest]) -> Opened:
    """Put the shards of one evaluation together; their questions come in the suite's order.

    Raises:
        ConfigurationError: One was given twice, or they were cut from lists that are not the same.
    """
    _check_division(shards)
    parts, folders = list(shards.values()), tuple(shards)
    manifest = replace(
        parts[0],
        asked=tuple(_in_order(parts)),
        shard=", ".join(part.shard for part in parts),
        missing=tuple(dict.fromkeys(text for part in parts for text in part.missing)),
        started=min(part.started for part in parts),
    )
    records = {id: record for folder in folders for id, record in EvalFolder(folder).records().items()}
    places = {asked.id: folder for folder, part in shards.items() for asked in part.asked}
    return Opened(name, folders[0], folders, manifest, records, places)


def _check_division(parts: Mapping[Path, Manifest]) -> None:
    """Raise ConfigurationError unless every shard occurs once and all are of the same number of questions."""
    shards = [part.shard for part in parts.values()]
    if twice := next((shard for shard in shards if shards.count(shard) > 1), ""):
        places = [str(folder) for folder, part in parts.items() if part.shard == twice]
        raise ConfigurationError(
            f"Shard {twice} was given more than once: {' and '.join(places)}.",
            hint="Give each shard once; report repeated evaluations one at a time.",
        )
    ids = [item.id for part in parts.values() for item in part.asked]
    sizes = [_whole(part) for part in parts.values()]
    unlike = len(parts) > 1 and max(least for least, _ in sizes) > min(most for _, most in sizes)
    if unlike or len(set(ids)) < len(ids):
        asked = ", ".join(f"{part.shard} asks {len(part.asked)}" for part in parts.values())
        raise ConfigurationError(
            f"The shards were not cut from the same questions: {asked}.",
            hint="Run all shards with the same --limit and --ids, or report them one at a time.",
        )


def _whole(shard: Manifest) -> tuple[int, int]:
    """Return the least and most questions that the list had from which the shard was cut."""
    number, count = _number(shard), int(shard.shard.partition("/")[2])
    return number + count * (len(shard.asked) - 1), number + count * len(shard.asked) - 1


def _in_order(parts: list[Manifest]) -> list[PlannedQuestion]:
    """The questions of shards as the suite has them: shard 2 of 8 holds every eighth, from the second."""
    placed = [(place, _number(part), asked) for part in parts for place, asked in enumerate(part.asked)]
    return [asked for _, _, asked in sorted(placed, key=lambda item: item[:2])]


def _number(manifest: Manifest) -> int:
    return int(manifest.shard.partition("/")[0])


def _identity(manifest: Manifest) -> str:
    """Return a key that the shards of one evaluation share."""
    count = manifest.shard.partition("/")[2]
    parts = [manifest.suite, manifest.rules, manifest.metrics, manifest.options, manifest.version, count]
    return json.dumps(parts, default=str)


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
