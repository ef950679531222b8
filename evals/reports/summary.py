"""How an evaluation went, as data: what every report, page and comparison is made of.

Shares are 0 to 1, times are seconds, sizes are bytes, money is US dollars. What cannot be known is None,
never 0 and never NaN. What stands in several parts is defined where it is made.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorum.evals.folder import EvalFolder, merged
from quorum.evals.recorded.candidates import source_of_records
from quorum.evals.recorded.weights import Feedback, OnlineWeights, at_once, learn
from quorum.evals.records import Asked, Linking, Manifest, Record
from quorum.evals.reports import taxonomy
from quorum.evals.reports.asking import OneQuestion, one_question
from quorum.evals.reports.calibration import Calibration, calibrate
from quorum.evals.reports.costs import TOKENS, Account, Cost, Throughput, accounts, costs, throughput
from quorum.evals.reports.courses import Courses, courses
from quorum.evals.reports.evaluations import members_of, names, shards_of
from quorum.evals.reports.notes import notes
from quorum.evals.reports.scores import GoldGroup, Pair, Score, gold_groups, right, score, slices
from quorum.evals.reports.statistics import Mean, Share, Spread, mean_of, share_of, spread_of
from quorum.evals.reports.taxonomy import Category
from quorum.graph.options import RunOptions


@dataclass(frozen=True)
class Execution:
    """What became of the SQL, over the questions with SQL.

    Attributes:
        with_sql: Records with SQL, of all records.
        executes: It ran; over the records with SQL whose database is live.
        valid: It passes guard and lint; over the records with SQL.
    """

    with_sql: Share
    executes: Share
    valid: Share


@dataclass(frozen=True)
class LinkingScore:
    """Tables and columns of answers' SQL, or of linked schemas, against those of the gold.

    Attributes:
        questions: Records that have them.
        without_sql: Records without, because they have no SQL; what they would have missed is not known.
        table_strict, column_strict: Recall is 1: nothing that the gold uses is missed.
    """

    questions: int
    table_recall: Mean
    table_precision: Mean
    table_strict: Share
    column_recall: Mean
    column_precision: Mean
    column_strict: Share
    without_sql: int = 0


@dataclass(frozen=True)
class SchemaLinking:
    """What linking large schemas kept of what the gold needs (ReFoRCE, Table 5).

    Attributes:
        linked: Questions whose schema was linked.
        unknown: Of these, those without gold, or whose linked schema is no schema text: in no figure.
        long: Over the linked ones; None if all are ``unknown``.
        all: Over all questions with gold, recall alone: of one that saw the whole schema it is 1.
    """

    linked: int
    unknown: int
    long: LinkingScore | None
    all: LinkingScore | None


@dataclass(frozen=True)
class Votes:
    """How candidates voted, over the records with a vote.

    Attributes:
        questions: Records with a vote.
        candidates: Per question, of its last round, failed ones included.
        agreeing: Share of a question's candidates that stand in the winner's cluster.
        ties: Questions whose vote was a tie.
        saved: Candidates that the stopping rule spared, per question.
        settled: How votes were settled beyond counting (``judge``, ``user``, …): number of questions.
    """

    questions: int
    candidates: Mean
    agreeing: Mean
    ties: Share
    saved: Spread
    settled: dict[str, int]


@dataclass(frozen=True)
class Line:
    """One question asked for, for tables of questions.

    Attributes:
        status: ``Record.status``, or ``not asked yet``.
        right: None if unknown; False without an answer.
        category: Of ``Summary.unanswered`` or ``Summary.wrong``; empty if right or not known.
        reason: The scorer's, or the error in words.
        seconds: Wall clock; None without a ledger, as ``model_calls`` and ``tokens``.
        tokens: In and out together.
        folder: Place in ``Summary.folders`` of the folder that holds the run; None without a record.
        run: The run's folder relative to it; empty without.
    """

    id: str
    question: str
    database: str
    difficulty: str
    status: str
    right: bool | None
    category: str = ""
    reason: str = ""
    confidence: float | None = None
    model_calls: int | None = None
    seconds: float | None = None
    folder: int | None = None
    run: str = ""
    tokens: int | None = None


@dataclass(frozen=True)
class Summary:
    """An evaluation in figures.

    Attributes:
        name: Names it among those reported together: its folder's name.
        folders: One per shard, as they were given.
        suite, rules, version, started: Of the manifest; ``rules`` says by whose rules answers are judged.
        options: All options of the runs that count for answers.
        shards: The numbers of the shards here; ``shard_count`` is how many there are (1 of 1 if not sharded).
        demonstration: Answers that the rule-based offline model took part in: they say nothing of a model.
        failed_endpoint: Records that failed for lack of the endpoint or the database: asked again when the
            run is started again.
        without_ledger: Records whose cost is not known, because they failed before there was any.
        overall: Over all questions; ``slices`` by the names of ``scores.GROUPS``, each only where it tells
            questions apart.
        gold: Questions with unsound gold, by state.
        costs: In the order of reports.
        unanswered: Questions without an answer by kind of error; ``wrong`` answers by what is wrong.
            Each question stands in one category. Empty categories are left out.
        calibration: Of the confidence, over answers known to be right or wrong; None without any.
        linking: Of the answers' SQL; None if no record has it, as ``votes`` and ``courses``.
        schema_linking: None if no schema was linked.
        one_question: With one question to a simulated user; None where none was simulated.
        learned: Of several experts, by feedback, the weights that they earn where their first candidates
            vote again afterwards (``quorum.evals.recorded.weights``); empty with a single expert.
        missing: What the suite's folder lacked, for people.
        notes: What cannot be measured and why, for people, most important first.
        lines: Every question asked for, in order.
    """

    name: str
    folders: tuple[Path, ...]
    suite: str
    rules: str
    version: str
    started: str
    recipe: str
    models: tuple[str, ...]
    options: dict[str, Any]
    shards: tuple[int, ...]
    shard_count: int
    demonstration: int
    failed_endpoint: int
    without_ledger: int
    overall: Score
    slices: dict[str, tuple[Score, ...]]
    gold: tuple[GoldGroup, ...]
    execution: Execution
    costs: tuple[Cost, ...]
    by_agent: tuple[Account, ...]
    by_model: tuple[Account, ...]
    unanswered: tuple[Category, ...]
    wrong: tuple[Category, ...]
    calibration: Calibration | None
    linking: LinkingScore | None
    schema_linking: SchemaLinking | None
    votes: Votes | None
    learned: dict[Feedback, OnlineWeights]
    one_question: OneQuestion | None
    courses: Courses | None
    throughput: Throughput
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def changed_options(self) -> dict[str, Any]:
        """The options that are not the default, without recipe and models."""
        usual = RunOptions().as_dict()
        return {
            name: value
            for name, value in self.options.items()
            if name not in ("recipe", "models") and (name not in usual or usual[name] != value)
        }

    def run_of(self, line: Line) -> Path | None:
        """The folder of a question's run; None where it has none."""
        return self.folders[line.folder] / line.run if line.folder is not None and line.run else None

    def cost(self, name: str) -> Spread:
        """Of one resource, by its name in the ledger."""
        return next(cost.spread for cost in self.costs if cost.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON: without NaN; folders are their last names: no path of the machine is in it."""
        values: dict[str, Any] = _plain(dataclasses.asdict(self))
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.resolve().name if isinstance(value, Path) else value


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
    places = _places(pairs, folders)
    numbers, count = shards_of(manifest.shard)
    overall = score("all", pairs, manifest.metrics)
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
        by_agent=accounts(kept, "by_agent"),
        by_model=accounts(kept, "by_model"),
        unanswered=taxonomy.unanswered(kept),
        wrong=taxonomy.wrong(kept),
        calibration=calibrate(
            (record.confidence, right(record))
            for record in kept
            if record.status == "answered" and record.match is not None
        ),
        linking=_linking(
            (record.linking for record in kept),
            without_sql=sum(record.linking is None and not record.sql for record in kept),
        ),
        schema_linking=_schema_linking(kept),
        votes=_votes(kept),
        one_question=one_question(pairs),
        learned=_learned(kept, {id: folders[place] for id, place in places.items()}),
        courses=courses(kept),
        throughput=throughput(kept),
        missing=manifest.missing,
        notes=tuple(notes(overall, kept, numbers, count, str(manifest.options.get("gold") or ""))),
        lines=tuple(_line(asked, record, places[asked.id]) for asked, record in pairs),
    )


def _execution(records: Sequence[Record]) -> Execution:
    written = [record for record in records if record.sql]
    return Execution(
        with_sql=share_of(bool(record.sql) for record in records),
        executes=share_of(record.executes for record in written if record.executes is not None),
        valid=share_of(record.valid for record in written if record.valid is not None),
    )


def _schema_linking(records: Sequence[Record]) -> SchemaLinking | None:
    linked = [record for record in records if record.linked]
    if not linked:
        return None
    return SchemaLinking(
        linked=len(linked),
        unknown=sum(record.schema_linking is None for record in linked),
        long=_linking(record.schema_linking for record in linked),
        all=_linking(
            dataclasses.replace(linking, table_precision=None, column_precision=None)
            for record in records
            if (linking := record.schema_linking)
        ),
    )


def _linking(linkings: Iterable[Linking | None], *, without_sql: int = 0) -> LinkingScore | None:
    found = [linking for linking in linkings if linking is not None]
    if not found:
        return None
    tables, columns = ([getattr(each, f"{part}_recall") for each in found] for part in ("table", "column"))
    return LinkingScore(
        questions=len(found),
        table_recall=mean_of(tables),
        table_precision=mean_of(each.table_precision for each in found),
        table_strict=share_of(recall >= 1 for recall in tables if recall is not None),
        column_recall=mean_of(columns),
        column_precision=mean_of(each.column_precision for each in found),
        column_strict=share_of(recall >= 1 for recall in columns if recall is not None),
        without_sql=without_sql,
    )


def _votes(records: Iterable[Record]) -> Votes | None:
    voted = [
        (record, record.vote)
        for record in records
        if record.vote and record.vote.get("settled") != "verified"
    ]
    if not voted:
        return None
    settled = Counter(str(vote["settled"]) for _, vote in voted if vote.get("settled"))
    return Votes(
        questions=len(voted),
        candidates=mean_of(len(record.voters) for record, _ in voted),
        agreeing=mean_of(_agreeing(record, vote) for record, vote in voted),
        ties=share_of(bool(vote.get("tie")) for _, vote in voted),
        saved=spread_of(vote.get("saved") for _, vote in voted),
        settled=dict(sorted(settled.items())),
    )


def _agreeing(record: Record, vote: Mapping[str, Any]) -> float | None:
    """Share of the last round's candidates that stand in the winner's cluster; None where nobody won."""
    if not record.voters or not vote.get("winner"):
        return None
    clusters = [cluster.get("candidates") or [] for cluster in vote.get("clusters") or []]
    own = next((members for members in clusters if vote.get("winner") in members), [])
    return len(own) / len(record.voters)


def _learned(records: Sequence[Record], folders: Mapping[str, Path]) -> dict[Feedback, OnlineWeights]:
    source = source_of_records({record.id: record for record in records}, folders)
    return at_once(learn(source.as_in_paper()))


def _places(pairs: Sequence[Pair], folders: Sequence[Path]) -> dict[str, int]:
    """By question, which of the folders holds its run."""
    places = dict.fromkeys((asked.id for asked, _ in pairs), 0)
    if len(folders) > 1:
        for number, folder in enumerate(folders):
            places |= {asked.id: number for asked in EvalFolder(folder).manifest().asked}
    return places


def _line(asked: Asked, record: Record | None, place: int) -> Line:
    if record is None:
        return Line(asked.id, "", asked.database, asked.difficulty, "not asked yet", False)
    usage, answered = record.usage, record.status == "answered"
    return Line(
        id=asked.id,
        question=record.question,
        database=asked.database,
        difficulty=asked.difficulty,
        status=record.status,
        right=record.match if answered else False,
        category=taxonomy.category(record),
        reason=record.message or record.reason,
        confidence=record.confidence if answered else None,
        model_calls=usage.get("model_calls"),
        seconds=usage.get("seconds"),
        folder=place,
        run=record.run,
        tokens=sum(int(usage.get(part) or 0) for part in TOKENS) if usage else None,
    )
