"""Requests and replies of the service; OpenAPI and MCP's schemas are made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from quorum.graph import values
from quorum.graph.answer import Answer, AnswerReading
from quorum.graph.clarification import MAX_REPLY, Asked
from quorum.knowledge.catalog import Table
from quorum.text import (
    agreement,
    failures,
    is_verified,
    laid_out,
    notices,
    readings_of,
    rows_note,
    shown_rows,
    spent,
    status_of,
    trust,
)

if TYPE_CHECKING:
    import pyarrow as pa

NAME = r"^[A-Za-z0-9_-]{0,40}$"
"""Names of databases, keys and conversations."""
RUN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$"
MOST_ROWS = 10_000
"""Rows of a query that is run by itself."""


class Body(BaseModel):
    """The body of a request; a field that is not declared is an error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Ask(Body):
    """A question. What is left out is as the server is set; a limit can only be made tighter."""

    question: str = Field(min_length=1, max_length=20_000)
    database: str = Field("", pattern=NAME, description="its name; may be left out where there is only one")
    id: str = Field(
        "",
        pattern=f"^$|{RUN}",
        description="the question's id, of the client's choice: sent again with it, a question is asked once",
    )
    session: str = Field("", pattern=NAME, description="names a conversation, of which this is a turn")
    after: str = Field("", max_length=81, description="id of a question whose conversation goes on")
    clarify: Literal["off", "on", "always"] | None = Field(
        None, description="ask back which reading is meant: the question waits, until a reply is sent"
    )
    approve: values.Approval | None = Field(
        None, max_length=20, description="ask before queries run: never, always, costly, or a size as 1GiB"
    )
    recipe: str | None = Field(None, max_length=40)
    votes: int | None = Field(None, ge=1, le=16)
    abstain_below: float | None = Field(None, ge=0, le=1)
    max_usd: float | None = Field(None, gt=0, le=1000)
    max_calls: int | None = Field(None, ge=1, le=1000)
    deadline: float | None = Field(None, gt=0, le=86_400, description="seconds")
    max_bytes: int | None = Field(None, ge=1, le=2**50, description="bytes that one query may read")
    max_run_bytes: int | None = Field(None, ge=1, le=2**50, description="bytes that all queries may read")
    max_rows: int | None = Field(None, ge=1, le=1_000_000)

    def options(self) -> dict[str, Any]:
        """Return the options of the question that were given."""
        return self.model_dump(exclude={"question", "database", "id", "session", "after"}, exclude_none=True)


class Reply(Body):
    """The reply to what a question waits for; ``waiting.how`` says what it may be."""

    reply: str = Field(max_length=4 * MAX_REPLY)


class Keep(Body):
    """Keeps an answer as verified."""

    note: str = Field("", max_length=2_000, description="what settled the reading, for later questions")


class Correct(Keep):
    """Keeps the right query for a question."""

    sql: str = Field(min_length=1, max_length=200_000)


class RunSql(Body):
    """A query to be judged and run."""

    sql: str = Field(min_length=1, max_length=200_000)
    database: str = Field("", pattern=NAME)
    rows: int = Field(100, ge=1, le=MOST_ROWS, description="rows at most")


class ShownReading(BaseModel):
    """Another reading, as the trace page shows it."""

    says: str
    sql: str
    columns: list[str]
    rows: list[list[str]]
    rows_note: str


class Shown(BaseModel):
    """An answer in words and formatted rows, as the trace page shows it; the terminal says the same.

    Attributes:
        open_readings: Readings that were not run, in sentences.
        failures: Which candidates have no result, and why.
    """

    status: str
    tone: str
    trust: str
    trust_tone: str
    sql: str
    rows: list[list[str]]
    rows_note: str
    readings: list[ShownReading]
    open_readings: list[str]
    notices: list[str]
    failures: list[list[str]]
    agreement: str
    spent: str
    verified: bool


class AnswerBody(Answer):
    """An answer with all its fields; places on the server are links."""

    shown: Shown


class QuestionBody(BaseModel):
    """A question and how far it is.

    Attributes:
        status: ``running``; ``waiting`` for a reply; ``cancelled``, ``failed``, or ``interrupted`` by an end
            of the server; else the answer's.
        waiting: What it asks: a clarification or an approval.
    """

    id: str
    question: str
    database: str
    session: str
    status: str
    waiting: dict[str, Any] | None = None
    error: str = ""
    hint: str = ""
    answer: AnswerBody | None = None
    links: dict[str, str]


class Fault(BaseModel):
    """The reason of a failure, and what to do."""

    message: str
    hint: str = ""
    kind: str


class ErrorBody(BaseModel):
    """An error."""

    error: Fault


class DatabaseBody(BaseModel):
    """A database that can be asked, or why it cannot; ``examples`` are questions to begin with."""

    name: str
    error: str = ""
    dialect: str = ""
    tables: int = 0
    title: str = ""
    examples: list[str] = []


class Health(BaseModel):
    status: str
    running: int


class Databases(BaseModel):
    databases: list[DatabaseBody]


class ColumnBody(BaseModel):
    """A column; ``odd`` says what a query has to mind about its values."""

    name: str
    type: str
    description: str
    nullable: bool
    samples: list[str]
    odd: str
    key: bool
    refers_to: str


class TableBody(BaseModel):
    name: str
    kind: str
    description: str
    rows: int | None
    columns: list[ColumnBody]


class Schema(BaseModel):
    """Tables, those first that the words may mean; ``total`` tables are there."""

    database: str
    dialect: str
    total: int
    tables: list[TableBody]
    notes: list[str]


class Values(BaseModel):
    """Values that the words name, by column; of ``unread`` columns not all were looked at."""

    values: dict[str, list[str]]
    unread: list[str]


class Rows(BaseModel):
    """Rows of a result. ``truncated`` says why there are more in the database; empty if there are none."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    shown: list[list[str]]
    row_count: int
    truncated: str = ""
    seconds: float = 0.0
    sql: str = ""


class ChartBody(BaseModel):
    """A chart of rows as Vega-Lite; without ``spec`` there is none, and ``note`` says why."""

    kind: str = ""
    alt: str = ""
    note: str = ""
    spec: dict[str, Any] | None = None


class Run(BaseModel):
    """A question of the past."""

    id: str
    question: str
    status: str
    started: str
    database: str
    session: str
    demonstration: bool


class History(BaseModel):
    questions: list[Run]


class Spent(BaseModel):
    """The amounts that a caller has used this month, and those left; None where there is no limit."""

    name: str
    month: str
    questions: int
    usd: float
    calls: int
    bytes: int
    left_usd: float | None = None
    left_calls: int | None = None
    left_bytes: int | None = None


class TaughtBody(BaseModel):
    """A verified answer that was kept."""

    id: str
    question: str
    credit: str
    replaced: str
    warning: str
    dates: list[str]
    row_count: int | None = None


def table_body(table: Table, dialect: str) -> TableBody:
    """Return a table for clients."""
    from quorum.knowledge.schema.oddities import oddities

    refers = {
        name: f"{key.ref_table}.{other}"
        for key in table.foreign_keys
        for name, other in zip(key.columns, key.ref_columns, strict=False)
    }
    columns = [
        ColumnBody(
            name=each.name,
            type=each.type,
            description=each.description,
            nullable=each.nullable,
            samples=list(each.samples[:5]),
            odd=oddities(each, dialect, ends=False),
            key=each.name in table.primary_key,
            refers_to=refers.get(each.name, ""),
        )
        for each in table.columns
    ]
    return TableBody(
        name=table.full_name,
        kind=table.kind,
        description=table.description,
        rows=table.row_count,
        columns=columns,
    )


def answer_body(answer: Answer, at: str, clean: Callable[[str], str]) -> AnswerBody:
    """Return an answer for clients.

    Args:
        at: The link of its question.
        clean: Takes places of the server out of its errors and warnings.
    """
    said = {"error": clean(answer.error), "hint": clean(answer.hint)}
    answer = answer.model_copy(update=said | {"warnings": [clean(each) for each in answer.warnings]})
    fields = dict(answer) | {"shown": shown(answer), "trace": f"{at}/trace"}
    if answer.result_file:
        fields["result_file"] = f"{at}/rows"
    fields["readings"] = [
        each.model_copy(update={"result_file": f"{at}/rows?reading={n}"}) if each.result_file else each
        for n, each in enumerate(answer.readings, 1)
    ]
    fields["candidates"] = [
        each.model_copy(update={"result_file": f"{at}/rows?candidate={each.id}"})
        if each.result_file
        else each
        for each in answer.candidates
    ]
    fields["convention"] = answer.convention.rpartition("/")[2]
    return AnswerBody.model_construct(**fields)


def rows_body(table: pa.Table, **more: Any) -> Rows:
    """Return a table for clients."""
    from quorum.tools.results.values import plain_rows

    columns, types, plain = table.column_names, [str(each.type) for each in table.schema], plain_rows(table)
    texts = [list(row) for row in shown_rows(columns, plain, types, 300)]
    return Rows(columns=columns, types=types, rows=plain, shown=texts, row_count=table.num_rows, **more)


def waiting_body(asked: Asked) -> dict[str, Any]:
    """Return what a question waits for; a choice's rows also as the terminal shows them (``shown``)."""
    made = asked.model_dump(mode="json")
    for choice in made.get("choices", ()):
        choice["shown"] = shown_rows(choice["columns"], choice["rows"], choice["types"], 300)
    return made


def shown(answer: Answer) -> Shown:
    """Return the texts that the trace page shows."""
    (status, tone), (trusted, trust_tone), (run, unrun) = (
        status_of(answer),
        trust(answer),
        readings_of(answer),
    )
    return Shown(
        status=status,
        tone=tone,
        trust=trusted,
        trust_tone=trust_tone,
        sql=laid_out(answer.sql, answer.dialect),
        rows=[list(row) for row in shown_rows(answer.columns, answer.rows, answer.types, 300)],
        rows_note=rows_note(answer) if answer.columns else "",
        readings=[_reading(each, answer.dialect) for each in run],
        open_readings=unrun,
        notices=notices(answer),
        failures=[list(each) for each in failures(answer)],
        agreement=agreement(answer),
        spent=spent(answer.usage) if answer.usage else "",
        verified=is_verified(answer),
    )


def _reading(reading: AnswerReading, dialect: str) -> ShownReading:
    return ShownReading(
        says=reading.says,
        sql=laid_out(reading.sql, dialect),
        columns=reading.columns,
        rows=[list(row) for row in shown_rows(reading.columns, reading.rows, reading.types, 300)],
        rows_note=rows_note(reading),
    )
