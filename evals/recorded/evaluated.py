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

    A question whose candidates have no verdict, or whose run folder is gone, is unknown.

    Args:
        places: By question, the folder of the evaluation that holds its run.
    """
    asked = {id: records[id] for id in sorted(records)}
    judged = {
        id
        for id, record in asked.items()
        if any(row.match is not None for row in record.candidates)
        and (places[id] / record.run / "answer.json").is_file()
    }
    voted = [[row.model for row in asked[id].candidates] for id in judged]
    models = sorted({model for each in voted for model in each})

    def ballots(id: str) -> dict[str, RecordedBallots]:
        if id in judged:
            return _ballots(asked[id], places[id] / asked[id].run, models)
        nothing = RecordedBallots(id, (), ResultOverlaps({}), judged=False, right=frozenset())
        return dict.fromkeys([*models, POOLED], nothing)

    return Source(
        models=models,
        questions=list(asked),
        known=bool(judged),
        unknown=[id for id in asked if id not in judged],
        several=any(len(each) > len(set(each)) for each in voted),
        dialect_of=lambda id: asked[id].dialect,
        ballots=ballots,
    )


def _ballots(record: Record, run: Path, models: list[str]) -> dict[str, RecordedBallots]:
    """The candidates of a question, for each model and for all pooled.

    Raises:
        QuorumError: The answer or a result is damaged.
    """
    from quorum.tools.canonical import canonical
    from quorum.tools.results import fingerprint, is_blank, read_result

    answer = Answer.model_validate(RunFolder(run).answer())
    files = {each.fingerprint: Path(each.result_file).name for each in answer.candidates if each.result_file}
    # where all results are the same, nothing hangs on what they hold
    tables = {mark: read_result(run / "results" / name) for mark, name in files.items() if len(files) > 1}
    forms = {mark: canonical(table) for mark, table in tables.items()}
    blank = {mark for mark, table in tables.items() if is_blank(table, forms[mark])}
    ordered = any(fingerprint(form) != mark for mark, form in forms.items())
    overlaps = ResultOverlaps.from_tables(forms, ordered=ordered)
    made = [_ballot(each, overlaps.clusters, blank) for each in answer.candidates]
    right = {row.id for row in record.candidates if row.match}
    found = {}
    for group in (*models, POOLED):
        own = tuple(ballot for ballot in made if group in (ballot.expert, POOLED))
        of_them = frozenset(ballot.candidate for ballot in own if ballot.candidate in right)
        found[group] = RecordedBallots(record.id, own, overlaps, judged=True, right=of_them)
    return found


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
