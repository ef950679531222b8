"""From an evaluation's records to its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quorum.evals.folder import EvalFolder, merged
from quorum.evals.records import Linking, Manifest, Record
from quorum.evals.reports import taxonomy
from quorum.evals.reports.calibration import calibrate
from quorum.evals.reports.costs import agents, costs, throughput
from quorum.evals.reports.names import members_of, names
from quorum.evals.reports.notes import notes
from quorum.evals.reports.scores import ALL, Pair, gold_groups, right, score, slices
from quorum.evals.reports.statistics import mean_of, share_of, spread_of
from quorum.evals.reports.summary import Execution, Line, LinkingScore, Summary, Votes

NOT_ASKED = "not asked yet"
TOKENS = ("input_tokens", "output_tokens")


def summaries(folders: Sequence[Path]) -> tuple[Summary, ...]:
    """Read evaluations, shards of the same one put together, in the order in which they are named.

    Args:
        folders: Of evaluations, or folders whose subfolders are evaluations.

    Raises:
        ConfigurationError: A folder holds no evaluation, or shards do not fit together.
    """
    found = list(merged([member for folder in folders for member in members_of(folder)]))
    titles = names([members for _, _, members in found])
    return tuple(
        summarise(manifest, records, members, name=name)
        for name, (manifest, records, members) in zip(titles, found, strict=True)
    )


def summarise(
    manifest: Manifest, records: Mapping[str, Record], folders: Sequence[Path], *, name: str
) -> Summary:
    """The summary of one evaluation.

    Args:
        records: By id; those of questions that are not asked for are left out.
        folders: Where it lies: one, or one per shard.
        name: For tables and headings.
    """
    pairs: list[Pair] = [(asked, records.get(asked.id)) for asked in manifest.asked]
    kept = [record for _, record in pairs if record is not None]
    numbers, count = _shards(manifest.shard)
    overall, linking = score(ALL, pairs, manifest.metrics), _linking(kept)
    return Summary(
        name=name,
        folders=tuple(folders),
        suite=manifest.suite,
        rules=manifest.rules,
        version=manifest.version,
        started=manifest.started,
        recipe=str(manifest.options.get("recipe", "")),
        models=tuple(str(model) for model in manifest.options.get("models") or ()),
        options=dict(manifest.options),
        shards=numbers,
        shard_count=count,
        demonstration=sum(record.demonstration for record in kept),
        failed_endpoint=sum(not record.finished for record in kept),
        without_ledger=sum(not record.usage for record in kept),
        overall=overall,
        slices=slices(pairs, manifest.metrics),
        gold=gold_groups(kept),
        execution=_execution(kept),
        costs=costs(kept),
        agents=agents(kept),
        unanswered=taxonomy.unanswered(kept),
        wrong=taxonomy.wrong(kept),
        calibration=calibrate(
            (record.confidence, right(record))
            for record in kept
            if record.status == "answered" and record.match is not None
        ),
        linking=linking,
        votes=_votes(kept),
        throughput=throughput(kept),
        missing=manifest.missing,
        notes=tuple(notes(overall, kept, numbers, count)),
        lines=_lines(pairs, folders),
    )


def _shards(text: str) -> tuple[tuple[int, ...], int]:
    """``1/8, 3/8`` as ((1, 3), 8)."""
    parts = [part.strip().partition("/") for part in text.split(",")]
    return tuple(sorted(int(number) for number, _, _ in parts)), int(parts[0][2])


def _execution(records: Sequence[Record]) -> Execution:
    written = [record for record in records if record.sql]
    return Execution(
        with_sql=share_of(bool(record.sql) for record in records),
        executes=share_of(record.executes for record in written if record.executes is not None),
        valid=share_of(record.valid for record in written if record.valid is not None),
    )


def _linking(records: Sequence[Record]) -> LinkingScore | None:
    found = [record.linking for record in records if record.linking is not None]
    if not found:
        return None

    def whole(part: str) -> Iterable[bool]:
        recalls = (_part(linking, part) for linking in found)
        return (recall >= 1 for recall in recalls if recall is not None)

    return LinkingScore(
        questions=len(found),
        table_recall=mean_of(_part(linking, "table_recall") for linking in found),
        table_precision=mean_of(_part(linking, "table_precision") for linking in found),
        table_strict=share_of(whole("table_recall")),
        column_recall=mean_of(_part(linking, "column_recall") for linking in found),
        column_precision=mean_of(_part(linking, "column_precision") for linking in found),
        column_strict=share_of(whole("column_recall")),
        without_sql=sum(record.linking is None and not record.sql for record in records),
    )


def _part(linking: Linking, name: str) -> float | None:
    value: float | None = getattr(linking, name)
    return value


def _votes(records: Iterable[Record]) -> Votes | None:
    held = [(record, record.vote) for record in records if record.vote]
    if not held:
        return None
    settled = Counter(str(vote["settled"]) for _, vote in held if vote.get("settled"))
    return Votes(
        questions=len(held),
        candidates=mean_of(len(record.candidates) for record, _ in held),
        agreeing=mean_of(_agreeing(record, vote) for record, vote in held),
        ties=share_of(bool(vote.get("tie")) for _, vote in held),
        saved=spread_of(vote.get("saved") for _, vote in held),
        settled=dict(sorted(settled.items())),
    )


def _agreeing(record: Record, vote: Mapping[str, Any]) -> float | None:
    """Share of the candidates that stand in the winner's cluster; None where nobody won."""
    if not record.candidates or not vote.get("winner"):
        return None
    clusters = [cluster.get("candidates") or [] for cluster in vote.get("clusters") or []]
    own = next((members for members in clusters if vote.get("winner") in members), [])
    return len(own) / len(record.candidates)


def _lines(pairs: Sequence[Pair], folders: Sequence[Path]) -> tuple[Line, ...]:
    places = dict.fromkeys((asked.id for asked, _ in pairs), 0)
    if len(folders) > 1:
        for number, folder in enumerate(folders):
            places |= {asked.id: number for asked in EvalFolder(folder).manifest().asked}
    return tuple(_line(pair, places[pair[0].id]) for pair in pairs)


def _line(pair: Pair, place: int) -> Line:
    asked, record = pair
    if record is None:
        return Line(
            asked.id,
            "",
            asked.database,
            asked.difficulty,
            NOT_ASKED,
            False,
            "",
            "",
            None,
            None,
            None,
            None,
            "",
        )
    calls, seconds = record.usage.get("model_calls"), record.usage.get("seconds")
    return Line(
        id=asked.id,
        question=record.question,
        database=asked.database,
        difficulty=asked.difficulty,
        status=record.status,
        right=record.match if record.status == "answered" else False,
        category=taxonomy.category(record),
        reason=record.message or record.reason,
        confidence=record.confidence if record.status == "answered" else None,
        model_calls=calls,
        seconds=seconds,
        folder=place,
        run=record.run,
        tokens=sum(int(record.usage.get(part) or 0) for part in TOKENS) if record.usage else None,
    )
