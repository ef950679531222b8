"""The answer of a run: what the command line prints, scripts receive and ``answer.json`` holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from quorum.knowledge.errors import missing_extra

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Status = Literal["answered", "unanswerable", "no_answer", "stopped", "failed"]


class AnswerCluster(BaseModel):
    """Candidates whose results agree, the best first; ``share`` is their part of the weight, 0 to 1."""

    candidates: list[str]
    share: float
    weight: float
    key: str


class AnswerVote(BaseModel):
    """The vote of the candidates: the weight of each expert, and the seed if it was drawn.

    ``settled`` is ``user`` where the user chose between its answers, ``verified`` where there was no vote
    because a person has verified the query. ``stopping`` is the rule that ended the sampling, ``saved`` the
    candidates that it spared. ``doubt`` is the number of other readings that show something else (where none
    was run, the share of writers that saw one). ``certainty`` is how probably the answer is right, as its
    writers say.
    """

    strategy: str
    winner: str | None = None
    weights: dict[str, float] = {}
    seed: int | None = None
    clusters: list[AnswerCluster] = []
    tie: bool = False
    settled: str = ""
    stopping: str = "never"
    saved: int = 0
    doubt: float | None = None
    certainty: float | None = None
    notes: list[str] = []


class AnswerCandidate(BaseModel):
    """A candidate: its SQL and what became of it.

    ``error`` and ``error_kind`` (``quorum.tools.query.ErrorKind``, or why it could not go on) are empty if it
    has a result, which lies in ``result_file`` (Parquet). ``row_count`` rows are kept; with ``truncated``
    there were more. ``confirmed`` is whether its result came twice, where that was asked for; ``superseded``
    that a second round voted without it; ``readings`` what else the question could mean, as its writer says.
    """

    id: str
    model: str
    sql: str
    error: str
    error_kind: str = ""
    row_count: int | None
    truncated: bool = False
    result_file: str = ""
    fingerprint: str
    approved: bool | None
    confirmed: bool | None = None
    superseded: bool = False
    repairs: int
    weight: float = 1.0
    assumptions: list[str] = []
    readings: list[str] = []


class AnswerReading(BaseModel):
    """Another meaning of the question.

    Where it was written and run (``sql`` is not empty), its result is another one than the answer's:
    ``rows`` are its first few, all ``row_count`` kept ones lie in ``result_file`` (Parquet).
    """

    says: str
    sql: str = ""
    columns: list[str] = []
    types: list[str] = []
    rows: list[list[Any]] = []
    row_count: int = 0
    truncated: bool = False
    result_file: str = ""


class Answer(BaseModel):
    """A question's answer with everything needed to trust or distrust it.

    Attributes:
        status: ``answered``; ``unanswerable`` (``missing`` says what the data lacks); ``no_answer`` (best
            effort shown); ``stopped`` (a limit ended the run; the best so far is shown); ``failed`` (of
            many questions this one could not be asked: ``error`` says why, ``hint`` what to do).
        summary: What the rows show, in a sentence of the model that wrote the query; may be empty.
        assumptions: What the query rests on without the question having said it.
        rows: The first 20 rows; all kept rows lie in ``result_file`` (Parquet).
        types: Of the columns, as Arrow writes them: ``decimal128(12, 2)``.
        row_count: Rows kept; with ``truncated`` there were more.
        reading: How it reads the question, in a sentence like those of ``readings``; may be empty.
        readings: What else the question could mean, say those who gave this answer; at most three.
        readings_tried: Other readings that the ReadingWriter wrote, 0 if it finds nothing open; None where it
            was not asked.
        meant: The reading that the user chose, in words, where it was not the answer's own.
        doubts: What checks of silent errors found in the query that was let stand, and what they change.
        convention: The file that keeps ``meant`` for later questions (``quorum.ask``).
        disagreement: How the strong answers of a close vote differ, in words; empty if it is clear.
        confidence: 0 to 1, calibrated on recorded votes (``quorum.graph.confidence``); 0 if not rated, as of
            the offline rules.
        grounds: Why it is that, in a short sentence; empty without a result.
        usage: The ledger: totals, ``by_agent``, ``by_model`` and ``seconds`` of wall clock. ``usd`` is None
            when a model's price is unknown.
        parts: What was read in each database for the query, of a question about several.
        tables: That the query reads, as it names them, each with a mark of its columns' names and types.
        verified: Verified questions that the models were shown, with who stands for them.
        sources: Documents that they were shown: files, with line and headings where it was a passage.
        stopped_by: The limit that ended the run, else empty.
        demonstration: True when the rule-based offline model took part.
        turn: In a conversation, what was said; ``became`` is what was made of it, if that is something else.
        of_run: The run whose result is shown or spoken of, of a turn that needed no query.
        words: Such a turn's reply in words; the other fields are those of the answer that it is about.
        chart: How such a turn wants the rows drawn: ``bar``, ``line`` or ``point``.
    """

    question: str
    status: Status
    error: str = ""
    hint: str = ""
    missing: str = ""
    summary: str = ""
    database: str
    dialect: str
    recipe: str
    sql: str = ""
    columns: list[str] = []
    types: list[str] = []
    rows: list[list[Any]] = []
    row_count: int = 0
    truncated: bool = False
    result_file: str = ""
    confidence: float = 0.0
    grounds: str = ""
    vote: AnswerVote | None = None
    assumptions: list[str] = []
    reading: str = ""
    readings: list[AnswerReading] = []
    readings_tried: int | None = None
    meant: str = ""
    convention: str = ""
    doubts: list[str] = []
    disagreement: list[str] = []
    candidates: list[AnswerCandidate] = []
    usage: dict[str, Any] = {}
    run_id: str = ""
    trace: str = ""
    tables: dict[str, str] = {}
    verified: list[str] = []
    sources: list[str] = []
    parts: list[str] = []
    warnings: list[str] = []
    stopped_by: str = ""
    demonstration: bool = False
    turn: str = ""
    became: str = ""
    of_run: str = ""
    words: str = ""
    chart: str = ""

    def to_arrow(self) -> pa.Table:
        """All kept rows with their exact types; without a result a table without columns.

        Raises:
            QuorumError: The result's file is gone or damaged.
        """
        import pyarrow as pa

        from quorum.tools.results.files import read_result

        if self.result_file:
            return read_result(Path(self.result_file))
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.columns)
        return pa.Table.from_arrays([pa.array(column) for column in columns], names=self.columns)

    def to_pandas(self) -> pd.DataFrame:
        """All kept rows as a data frame of Arrow's types: whole numbers beside NULLs and decimals stay exact.

        Raises:
            ConfigurationError: pandas is not installed.
            QuorumError: As ``to_arrow``.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise missing_extra("evals", "A data frame", needs="pandas") from error
        table = self.to_arrow()
        columns = [pd.Series(pd.arrays.ArrowExtensionArray(column)) for column in table.columns]
        frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
        frame.columns = table.column_names  # names may repeat
        return frame
