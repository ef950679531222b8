"""An evaluation's candidates made ready to vote again, from its records and its run folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quorum.evals.recorded.ballots import POOLED, RecordedBallots, Source
from quorum.evals.records import Record
from quorum.graph.answer import Answer, AnswerCandidate
from quorum.graph.ballots import Ballot
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.graph.runs import RunFolder


def source_of_records(records: Mapping[str, Record], places: Mapping[str, Path]) -> Source:
    """The candidates of an evaluation, each right or wrong as its scorer said.

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
    read = {
        id: answer
        for id, record in asked.items()
        if any(row.match is not None for row in record.candidates)
        and (answer := _answer(places[id] / record.run))
    }
    voted = {id: [each.model for each in _voted(answer)] for id, answer in read.items()}
    models = sorted({model for each in voted.values() for model in each})

    def ballots(id: str) -> dict[str, RecordedBallots]:
        every = (
            _ballots(asked[id], read[id], places[id] / asked[id].run)
            if id in read
            else RecordedBallots(id, (), ResultOverlaps({}), frozenset())
        )
        return {**{model: every.of(model) for model in models}, POOLED: every}

    return Source(
        models=models,
        questions=list(asked),
        known=bool(read),
        unknown=[id for id in asked if id not in read],
        learnable=[id for id, each in voted.items() if set(each) == set(models)],
        several=any(len(each) > len(set(each)) for each in voted.values()),
        dialect_of=lambda id: asked[id].dialect,
        ballots=ballots,
    )


def _answer(run: Path) -> Answer | None:
    """A run's answer; None if it is gone, or a result of its candidates."""
    found = RunFolder(run).answer()
    answer = Answer.model_validate(found) if found else None
    if answer and answer.vote and answer.vote.settled == "verified":
        return None  # nobody voted
    return answer if answer and all(file.is_file() for file in _results(answer, run).values()) else None


def _voted(answer: Answer) -> list[AnswerCandidate]:
    return [each for each in answer.candidates if not each.superseded]


def _results(answer: Answer, run: Path) -> dict[str, Path]:
    """Files by fingerprint."""
    return {
        each.fingerprint: run / "results" / Path(each.result_file).name
        for each in _voted(answer)
        if each.result_file
    }


def _ballots(record: Record, answer: Answer, run: Path) -> RecordedBallots:
    """The candidates of a question that voted.

    Raises:
        QuorumError: A result is damaged.
    """
    from quorum.tools.results.canonical import canonical, is_blank
    from quorum.tools.results.compare import fingerprint
    from quorum.tools.results.files import read_result

    files = _results(answer, run)
    # where all results are the same, nothing hangs on what they hold
    tables = {mark: read_result(file) for mark, file in files.items() if len(files) > 1}
    forms = {mark: canonical(table) for mark, table in tables.items()}
    blank = {mark for mark, table in tables.items() if is_blank(table, forms[mark])}
    ordered = any(fingerprint(form) != mark for mark, form in forms.items())
    overlaps = ResultOverlaps.from_tables(forms, ordered=ordered)
    made = tuple(_ballot(each, overlaps.clusters, blank) for each in _voted(answer))
    right = frozenset(row.id for row in record.candidates if row.match and not row.superseded)
    return RecordedBallots(record.id, made, overlaps, right)


def _ballot(candidate: AnswerCandidate, clusters: Mapping[str, str], blank: set[str]) -> Ballot:
    mark = candidate.fingerprint
    return Ballot(
        candidate.id,
        candidate.model,
        candidate.sql,
        fingerprint=mark,
        blank=mark in blank,
        error=candidate.error_kind,
        approved=candidate.approved,
        repairs=candidate.repairs,
        cluster=clusters.get(mark, mark),
    )
