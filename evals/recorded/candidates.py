"""Recorded candidates: what other systems answered, so that voting can be judged without a model.

A folder holds ``<model>/<question id>/K.sql`` and ``K.csv`` (its result, missing if it failed) for the
candidates K = 0, 1, ... (some may be missing), and ``final.sql``, ``final.csv`` for the one that the
recorded pipeline chose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from quorum.evals.paths import check_folder
from quorum.evals.records import Record
from quorum.evals.submissions import read_sql
from quorum.evals.tables import UnreadableCsv, read_csv
from quorum.graph.answer import AnswerCandidate
from quorum.graph.ballots import Ballot
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.canonical import Canonical, canonical, is_blank
from quorum.tools.results.compare import cluster_keys, fingerprint
from quorum.tools.results.files import read_result

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.evals.scorers.spider2 import Spider2Gold

FINAL = "final"
SHAPE = "<model>/<question>/<number>.sql and .csv"


@dataclass(frozen=True)
class RecordedCandidate:
    """One answer of a model to a question.

    Attributes:
        model: As the folder names it.
        question: The question's id.
        name: The candidate's number, or ``FINAL`` of the one that the recorded pipeline chose.
        sql: As recorded; empty if only the result is.
        path: The result's CSV file; need not exist.
    """

    model: str
    question: str
    name: str
    sql: str
    path: Path

    @property
    def final(self) -> bool:
        return self.name == FINAL

    @cached_property
    def table(self) -> pa.Table | None:
        """The result, read once; None if the candidate failed: no file, or one that is no CSV.

        Only empty fields are NULL (``quorum.evals.tables``).
        """
        if not self.path.is_file():
            return None
        try:
            return read_csv(self.path)
        except UnreadableCsv:
            return None


Recorded: TypeAlias = dict[str, dict[str, list[RecordedCandidate]]]
"""Candidates by model, then by question id, both sorted; of a question by number, ``FINAL`` last."""


def load_candidates(folder: Path) -> Recorded:
    """Read a folder of recorded candidates. SQL is read now, a result when it is asked for.

    Files of other names are left alone. A question may have no candidate.

    Raises:
        ConfigurationError: The folder is missing or has another shape, or holds no candidate.
    """
    check_folder(folder, hint=f"Give one that holds {SHAPE}.")
    models = {
        model.name: {question.name: list(_candidates(model.name, question)) for question in _folders(model)}
        for model in _folders(folder)
    }
    if not any(own for of_model in models.values() for own in of_model.values()):
        nearer = any(_candidate_names(inner) for inner in _folders(folder))
        hint = f"Give its parent, {folder.parent}." if nearer else f"Give one that holds {SHAPE}."
        raise ConfigurationError(f"{folder} holds no recorded candidates.", hint=hint)
    return {model: found for model, found in models.items() if found}


def _candidates(model: str, folder: Path) -> Iterator[RecordedCandidate]:
    for name in _candidate_names(folder):
        file = folder / f"{name}.sql"
        sql = read_sql(file) if file.is_file() else ""
        yield RecordedCandidate(model, folder.name, name, sql, folder / f"{name}.csv")


def _candidate_names(folder: Path) -> list[str]:
    """``0``, ``1``, ..., ``final``: each once, with the SQL or the result or both there."""
    pattern = re.compile(rf"(0|[1-9][0-9]*|{FINAL})\.(?:sql|csv)")
    names = {found[1] for path in folder.iterdir() if (found := pattern.fullmatch(path.name))}
    return sorted(names, key=lambda name: (name == FINAL, len(name), name))


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


POOLED = "pooled"
"""The candidates of all models together."""


@dataclass(frozen=True, eq=False)
class RecordedBallots:
    """One question's ballots, with what is known of its candidates.

    Attributes:
        ballots: By model, then by number; ids are ``model/number``, experts are models.
        overlaps: Compares their results.
        right: Ids of the candidates that are known to meet the gold.
        final: Whether the recorded pipeline's own choice meets the gold; None where nothing is recorded, and
            for the pool, which no pipeline chose from.
        dialect: Of their SQL.
    """

    question: str
    ballots: tuple[Ballot, ...]
    overlaps: ResultOverlaps
    right: frozenset[str]
    final: bool | None = None
    dialect: str = "sqlite"

    def only(self, kept: Iterable[Ballot]) -> RecordedBallots:
        """Return these ballots alone."""
        ballots = tuple(kept)
        own = {ballot.candidate for ballot in ballots}
        return replace(self, ballots=ballots, right=self.right & own)

    def as_in_paper(self) -> RecordedBallots:
        """Return only the first candidate of each expert, and blank results vote too."""
        first = {ballot.expert: ballot for ballot in reversed(self.ballots)}
        return self.only(replace(each, blank=False) for each in self.ballots if each in first.values())


@dataclass(frozen=True, eq=False)
class Source:
    """Candidates that can vote again: recorded ones, or those of an evaluation.

    Attributes:
        models: Sorted.
        questions: Ids, sorted.
        known: Something says which candidates are right.
        unknown: Questions of which nothing says so.
        learnable: Questions that say something of every expert: weights are learned from these.
        several: A model may have several candidates in a question.
        ballots: A question's, in each of ``names``.
    """

    models: Sequence[str]
    questions: Sequence[str]
    known: bool
    unknown: Sequence[str]
    learnable: Sequence[str]
    several: bool
    ballots: Callable[[str], Mapping[str, RecordedBallots]]

    @property
    def names(self) -> list[str]:
        """The models, and ``POOLED`` where there are several."""
        return [*self.models, POOLED] if len(self.models) > 1 else list(self.models)

    def as_in_paper(self) -> Source:
        """Return the setting of SSEV, section 3.1.2: one candidate of each model in each question, the first,
        and all results vote, blank ones too."""
        ballots = self.ballots

        def first(question: str) -> dict[str, RecordedBallots]:
            return {name: found.as_in_paper() for name, found in ballots(question).items()}

        return replace(self, several=False, ballots=first)


def source_of(recorded: Recorded, gold: Spider2Gold | None = None, *, dialect: str = "snowflake") -> Source:
    """Return recorded candidates as a source.

    Args:
        gold: Without it nothing can be right. A question that it does not know has no right candidate.
        dialect: Of the recorded SQL.

    Raises:
        ConfigurationError: The gold knows none of the questions, or a model has the name of the pool.
    """
    if POOLED in recorded:
        raise ConfigurationError(
            f"A model is called {POOLED!r}, which names all models together.", hint="Rename its folder."
        )
    every = [own for of_model in recorded.values() for own in of_model.values()]
    asked = sorted({question for of_model in recorded.values() for question in of_model})
    unknown = [question for question in asked if gold and question not in gold.files]
    if gold and len(unknown) == len(asked):
        raise ConfigurationError(
            f"The gold in {gold.folder} knows none of the {len(asked)} questions.",
            hint=f"They are like {', '.join(asked[:3])}; give the gold of their edition.",
        )
    source = Source(
        models=list(recorded),
        questions=asked,
        known=gold is not None,
        unknown=unknown,
        learnable=[question for question in asked if question not in unknown] if gold else [],
        several=any(sum(not each.final for each in own) > 1 for own in every),
        ballots=lambda question: ballots(question),
    )

    def ballots(question: str) -> dict[str, RecordedBallots]:
        """Read and score a question's results, once each. Two are a cluster if they agree, as in a run."""
        scorer = gold if gold and question in gold.files else None
        answers = [each for of_model in recorded.values() for each in of_model.get(question, ())]
        read = [_read(candidate, scorer) for candidate in answers if not candidate.final]
        finals = {
            each.model: scorer is not None and scorer.score(question, each.path).match
            for each in answers
            if each.final
        }
        forms = {ballot.fingerprint: form for ballot, form, _ in read if form}
        overlaps = ResultOverlaps(forms)
        made = {}
        for name in source.names:
            own = [each for each in read if name in (each[0].expert, POOLED)]
            right = frozenset(ballot.candidate for ballot, _, is_right in own if is_right)
            voting = _clustered([ballot for ballot, _, _ in own], forms)
            made[name] = RecordedBallots(question, voting, overlaps, right, finals.get(name), dialect)
        return made

    return source


def _read(candidate: RecordedCandidate, gold: Spider2Gold | None) -> tuple[Ballot, Canonical | None, bool]:
    """Return the candidate's ballot, its result (None if it failed), and whether that meets the gold."""
    right = gold is not None and gold.score(candidate.question, candidate.path).match is True
    ballot = Ballot(f"{candidate.model}/{candidate.name}", candidate.model, candidate.sql)
    table = candidate.table
    if table is None:
        return ballot, None, right
    form = canonical(table)
    return replace(ballot, fingerprint=fingerprint(form), blank=is_blank(table)), form, right


def _clustered(ballots: Sequence[Ballot], forms: Mapping[str, Canonical]) -> tuple[Ballot, ...]:
    """Return the ballots with what they vote for."""
    marks = sorted({ballot.fingerprint for ballot in ballots if ballot.fingerprint})
    clusters = dict(zip(marks, cluster_keys([forms[mark] for mark in marks]), strict=True))
    return tuple(replace(ballot, cluster=clusters.get(ballot.fingerprint, "")) for ballot in ballots)


def source_of_records(records: Mapping[str, Record], places: Mapping[str, Path]) -> Source:
    """Return the candidates of an evaluation, each right or wrong as its scorer said.

    A question whose candidates have no verdict, whose run folder was cleared, or that was answered by a
    verified query, is unknown. Only candidates that the last vote counted vote again. Where that vote lacked
    an expert (votes stopped early, say), nothing is learned from the question: what the expert would have
    said is not known.

    Args:
        places: By question, the folder of the evaluation that holds its run.

    Raises:
        QuorumError: An answer is damaged.
    """
    asked = {id: records[id] for id in sorted(records)}
    runs = {id: places[id] / record.run for id, record in asked.items()}
    read = {
        id: voters
        for id, record in asked.items()
        if any(row.match is not None for row in record.candidates) and (voters := _voters(runs[id]))
    }
    voted = {id: [each.model for each in voters] for id, voters in read.items()}
    models = sorted({model for each in voted.values() for model in each})

    def ballots(id: str) -> dict[str, RecordedBallots]:
        own, overlaps = _ballots(runs[id], read.get(id, []))
        right = frozenset(row.id for row in asked[id].candidates if row.match and not row.superseded)
        every = RecordedBallots(id, own, overlaps, right if own else frozenset(), dialect=asked[id].dialect)
        by_model = {model: every.only(it for it in own if it.expert == model) for model in models}
        return {**by_model, POOLED: every}

    return Source(
        models=models,
        questions=list(asked),
        known=bool(read),
        unknown=[id for id in asked if id not in read],
        learnable=[id for id, each in voted.items() if set(each) == set(models)],
        several=any(len(each) > len(set(each)) for each in voted.values()),
        ballots=ballots,
    )


def _voters(run: Path) -> list[AnswerCandidate]:
    """Return a run's candidates that voted last; none if nobody did, or if an answer or result is gone."""
    answer = RunFolder(run).answer()
    if answer is None or (answer.vote and answer.vote.settled == "verified"):
        return []
    voted = [each for each in answer.candidates if not each.superseded]
    return voted if all(file.is_file() for file in _files(run, voted).values()) else []


def _files(run: Path, voters: Iterable[AnswerCandidate]) -> dict[str, Path]:
    """Return the files of results by fingerprint."""
    return {it.fingerprint: run / "results" / Path(it.result_file).name for it in voters if it.result_file}


def _ballots(run: Path, voters: Sequence[AnswerCandidate]) -> tuple[tuple[Ballot, ...], ResultOverlaps]:
    """Return the ballots, and what compares their results.

    Raises:
        QuorumError: A result is damaged.
    """
    files = _files(run, voters)
    # where all results are the same, nothing depends on what they hold
    tables = {mark: read_result(file) for mark, file in files.items() if len(files) > 1}
    forms = {mark: canonical(table) for mark, table in tables.items()}
    blank = {mark for mark, table in tables.items() if is_blank(table, forms[mark])}
    ordered = any(fingerprint(form) != mark for mark, form in forms.items())
    overlaps = ResultOverlaps(forms, ordered=ordered)
    made = tuple(
        Ballot(
            it.id,
            it.model,
            it.sql,
            fingerprint=it.fingerprint,
            blank=it.fingerprint in blank,
            error=it.error_kind,
            approved=it.approved,
            repairs=it.repairs,
            cluster=overlaps.clusters.get(it.fingerprint, it.fingerprint),
        )
        for it in voters
    )
    return made, overlaps
