"""Arguments and replies of the service; the OpenAPI document and MCP's schemas are made of them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from quorum.chart import chart_of
from quorum.evals.reports.vega import styled
from quorum.graph import values
from quorum.graph.answer import Answer, AnswerReading
from quorum.graph.approval import Approval
from quorum.graph.clarification import Clarification, HumanRequest
from quorum.graph.runs import RunSummary
from quorum.knowledge.catalog import Table
from quorum.knowledge.errors import in_words
from quorum.knowledge.schema.oddities import oddities
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
from quorum.tools.results.values import plain_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.chart import Mark
    from quorum.teaching import Taught

NAME = r"^[A-Za-z0-9_-]{0,40}$"
"""Names of databases, keys and conversations."""
RUN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$"

Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=20_000)]
Words: TypeAlias = Annotated[str, Field(max_length=1_000, description="'refunds in Muenchen'")]
Sql: TypeAlias = Annotated[str, Field(min_length=1, max_length=200_000)]
Note: TypeAlias = Annotated[str, Field(max_length=2_000, description="what settled the reading")]
DatabaseName: TypeAlias = Annotated[str, Field(pattern=NAME, description="needed if there are several")]


def _text(given: Any) -> Any:
    """Refuse numbers, of which the schema knows nothing; settings take them for sizes."""
    if isinstance(given, int):
        raise ValueError("it must be a text")
    return given


class Body(BaseModel):
    """Arguments; one that is not declared is an error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Ask(Body):
    """A question. What is left out is as the server is set; a limit can only be made tighter."""

    question: Text
    database: DatabaseName = ""
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
    approve: Annotated[values.ApprovalRule, BeforeValidator(_text)] | None = Field(
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


def arguments(function: Callable[..., Any]) -> type[Body]:
    """Return the arguments of a function behind its first as a model; one called ``body`` is the model."""
    hints = get_type_hints(function, include_extras=True)
    _, *given = signature(function).parameters.values()
    if "body" in hints:
        body: type[Body] = hints["body"]
        return body
    fields: Any = {
        each.name: (hints[each.name], ... if each.default is each.empty else each.default) for each in given
    }
    return create_model(function.__name__.capitalize(), __base__=Body, **fields)


def wrong(error: ValidationError, kind: type[Body]) -> str:
    """Say what is wrong with arguments: ``rows: missing; word: is not known. It takes rows, words?.``"""
    said, problems = [], error.errors(include_url=False, include_input=False)[:5]
    for problem in problems:
        name = ".".join(map(str, problem["loc"]))[:80] or "the body"
        unknown = problem["type"] == "extra_forbidden"
        said.append(f"{name}: {'is not known' if unknown else in_words(problem)}")
    fields = [name if each.is_required() else f"{name}?" for name, each in kind.model_fields.items()]
    misnamed = {each["type"] for each in problems} & {"extra_forbidden", "missing"}
    takes = f" It takes {', '.join(fields) or 'nothing'}." if misnamed else ""
    return f"{'; '.join(said)}.{takes}"


class AnswerBody(Answer):
    """An answer with all its fields; places on the server are links.

    Attributes:
        confidence: None where it is not rated.
        shown: Texts and formatted rows, as the trace page and the terminal show them.
    """

    confidence: float | None  # type: ignore[assignment]
    shown: dict[str, Any]


class QuestionBody(BaseModel):
    """A question and how far it is.

    Attributes:
        status: ``running``; ``waiting`` for a reply; ``cancelled``, ``failed``, or ``interrupted`` by an end
            of the server; else the answer's.
        waiting: What it asks: a clarification or an approval.
        after: Id of the turn that it goes on from.
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
    after: str
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
    examples: list[str] = []


class Health(BaseModel):
    """``keys`` is not empty while the file of keys is wrong: the server's log says how."""

    status: str
    keys: str = ""
    running: int


class Databases(BaseModel):
    """``sql``: whether queries of one's own may run."""

    databases: list[DatabaseBody]
    sql: bool


class ColumnBody(BaseModel):
    """A column; ``odd`` says what a query has to mind about its values."""

    name: str
    type: str
    description: str
    nullable: bool
    samples: tuple[str, ...]
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


class ChartBody(BaseModel):
    """A chart of rows as Vega-Lite; without ``spec`` there is none, and ``note`` says why."""

    kind: str = ""
    alt: str = ""
    note: str = ""
    spec: dict[str, Any] | None = None


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
    chart: ChartBody | None = None


class History(BaseModel):
    """Questions of the past, with the names of their databases."""

    questions: list[RunSummary]


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
    dates: tuple[str, ...]
    row_count: int | None


def taught_body(taught: Taught) -> TaughtBody:
    """Return what was kept, for clients."""
    about: dict[str, Any] = {name: getattr(taught.pair, name) for name in ("id", "question", "credit")}
    about |= {name: getattr(taught, name) for name in ("replaced", "warning", "dates")}
    return TaughtBody(row_count=taught.result.row_count if taught.result else None, **about)


def table_body(table: Table, dialect: str) -> TableBody:
    """Return a table for clients."""
    refers = {
        name: f"{key.ref_table}.{other}"
        for key in table.foreign_keys
        for name, other in zip(key.columns, key.ref_columns, strict=False)
    }
    columns = [
        ColumnBody(
            **{name: getattr(each, name) for name in ("name", "type", "description", "nullable")},
            samples=each.samples[:5],
            odd=oddities(each, dialect, ends=False, plain=True),
            key=each.name in table.primary_key,
            refers_to=refers.get(each.name, ""),
        )
        for each in table.columns
    ]
    about = {"kind": table.kind, "description": table.description}
    return TableBody(name=table.full_name, rows=table.row_count, columns=columns, **about)


def rows_body(table: pa.Table, **more: Any) -> Rows:
    """Return a table for clients."""
    columns, types, plain = table.column_names, [str(each.type) for each in table.schema], plain_rows(table)
    texts = [list(row) for row in shown_rows(columns, plain, types, 300)]
    return Rows(columns=columns, types=types, rows=plain, shown=texts, row_count=table.num_rows, **more)


def chart_body(table: pa.Table, kind: Mark | Literal[""] = "") -> ChartBody:
    """Return the chart of a table, or why there is none; blocks."""
    found = chart_of(table, kind or None)
    if isinstance(found, str):
        return ChartBody(note=found)
    return ChartBody(kind=found.mark, alt=found.alt, note=found.note, spec=styled(found.spec()))


def asks(asked: HumanRequest, database: str) -> list[str]:
    """Return what a question of a database asks back, in lines of which one is the query to be approved."""
    if isinstance(asked, Clarification):
        lines = ["The question can be read in several ways. Which answer is meant?"]
        for each in asked.choices:
            rows = [", ".join(row) for row in shown_rows(each.columns, each.rows[:3], each.types, 300)]
            lines.append(f"{each.label}: {each.says} ({'; '.join(rows)}{'; …' * (each.row_count > 3)})")
        lines += asked.differences
    else:
        assert isinstance(asked, Approval)
        lines = ["May this query run?", asked.why, asked.sql, f"Reads: {asked.reads}, in {database}."]
    return [*filter(None, [asked.refused, *lines, asked.how])]


def waiting_body(asked: HumanRequest, database: str) -> dict[str, Any]:
    """Return what a question of a database waits for; a choice's rows also as text (``shown``)."""
    made = asked.model_dump(mode="json")
    if "database" in made:  # the name by which it is served
        made["database"] = database
    for choice in made.get("choices", ()):
        choice["shown"] = shown_rows(choice["columns"], choice["rows"], choice["types"], 300)
    return made


def answer_body(answer: Answer, at: str) -> AnswerBody:
    """Return an answer for clients; ``at`` is the link of its question."""

    def linked(each: Any, query: str = "") -> Any:
        return each.model_copy(update={"result_file": f"{at}/rows{query}"}) if each.result_file else each

    fields = dict(linked(answer)) | {
        "shown": shown(answer),
        "trace": f"{at}/trace",
        "readings": [linked(each, f"?reading={n}") for n, each in enumerate(answer.readings, 1)],
        "candidates": [linked(each, f"?candidate={each.id}") for each in answer.candidates],
        "convention": answer.convention.rpartition("/")[2],
        "confidence": rating(answer),
    }
    return AnswerBody.model_construct(**fields)


def rating(answer: Answer) -> float | None:
    """Return the confidence in an answer; None where it is not rated."""
    return answer.confidence if answer.columns and not answer.demonstration else None


def shown(answer: Answer) -> dict[str, Any]:
    """Return the texts that the trace page shows; ``open_readings`` were not run."""
    (status, tone), (trusted, trust_tone) = status_of(answer), trust(answer)
    run, unrun = readings_of(answer)
    return _result(answer, answer.dialect) | {
        "status": status,
        "tone": tone,
        "trust": trusted,
        "trust_tone": trust_tone,
        "readings": [{"says": each.says, **_result(each, answer.dialect)} for each in run],
        "open_readings": unrun,
        "notices": notices(answer),
        "failures": failures(answer),
        "agreement": agreement(answer),
        "spent": spent(answer.usage) if answer.usage else "",
        "verified": is_verified(answer),
    }


def _result(found: Answer | AnswerReading, dialect: str) -> dict[str, Any]:
    """Return the query, the columns and rows of an answer or reading, formatted."""
    return {
        "sql": laid_out(found.sql, dialect),
        "columns": found.columns,
        "rows": shown_rows(found.columns, found.rows, found.types, 300),
        "rows_note": rows_note(found) if found.columns else "",
    }
