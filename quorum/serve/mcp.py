"""An MCP server: assistants ask databases by tools, over stdio or over HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, ValidationError

from quorum import __version__
from quorum.answer import Answer
from quorum.graph.clarification import Clarification
from quorum.knowledge.errors import QuorumError
from quorum.knowledge.schema.render import render
from quorum.serve.bodies import (
    RUN,
    DatabaseName,
    Note,
    Sql,
    TaughtBody,
    Text,
    Values,
    Words,
    arguments,
    asks,
    rating,
    wrong,
)
from quorum.serve.keys import Caller
from quorum.serve.question import Question, cleaned
from quorum.serve.service import Service
from quorum.text import notices, printable, rows_note, spent, trust
from quorum.tools.query import QueryError
from quorum.tools.results.files import csv_lines

FEW, FOUND, STEPS = 5, 20, 300
"""Most rows of another reading or a choice; tables or values that words find; steps of a trace."""
LONG, MOST, MOST_CSV = 1_000, 100_000, 16_000_000
"""Most characters of a value, of a result's rows or a schema, of all rows as CSV."""
SCHEMA_TOKENS = 8_000
"""Of a schema with its descriptions and samples."""
HEAD, TAIL = "quorum://runs/", "/rows.csv"
"""Around a run's id: the address of its rows."""
INSTRUCTIONS = """Questions about databases, answered by checked, read-only SQL. Prefer `ask` to SQL of your
own, and tell the user its doubts, what it assumes and its other readings."""

McpContext: TypeAlias = ServerRequestContext[Any, Any]
McpResult: TypeAlias = types.CallToolResult | types.InputRequiredResult

_LOG = logging.getLogger(__name__)

Run: TypeAlias = Annotated[str, Field(pattern=RUN, description="the `run` of an earlier result")]
Most: TypeAlias = Annotated[int, Field(ge=1, le=1_000)]
MaxUsd: TypeAlias = Annotated[float | None, Field(gt=0, le=1_000, description="dollars at most")]
Clarify: TypeAlias = Annotated[bool | None, Field(description="ask back where a likely reading differs")]
ReplyText: TypeAlias = Annotated[str, Field(max_length=20_000)]


class Rows(BaseModel):
    """The first rows of a result. ``row_count`` were kept; with ``truncated`` the database has more."""

    sql: str = ""
    columns: list[str] = []
    rows: list[list[Any]] = []
    row_count: int = 0
    truncated: bool = False


class Reading(Rows):
    """Another meaning of the question; of a choice also the ``reply`` that chooses it."""

    says: str
    reply: str = ""


class Asked(Rows):
    """An answer, or what has to be chosen first; empty fields are left out.

    The status is answered, unanswerable, no_answer (best effort), stopped (by a limit), or needs_choice: ask
    the user which of the choices is meant, and give the reply to follow_up.
    """

    status: str
    run: str
    question: str = Field("", description="as it was understood")
    says: str = Field("", description="what the rows show, or what has to be chosen")
    rows_uri: str = Field("", description="resource with all rows as CSV")
    confidence: float | None = Field(None, description="probability that it is right; none if not rated")
    confidence_because: str = ""
    doubts: list[str] = Field([], description="what the data shows against it")
    assumes: list[str] = []
    other_readings: list[Reading] = []
    warnings: list[str] = []
    choices: list[Reading] = []
    cost: str = ""
    usd: float | None = None


class SchemaText(BaseModel):
    dialect: str
    tables: int
    text: str
    left_out: list[str] = []


class Steps(BaseModel):
    run: str
    question: str
    status: str
    steps: list[str] = Field(description="second, agent, candidate: what happened")
    cost: str = ""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool; the methods that ``GIVES`` names are the tools."""

    service: Service
    context: McpContext
    who: Caller
    params: types.CallToolRequestParams

    async def ask(
        self, question: Text, database: DatabaseName = "", clarify: Clarify = None, max_usd: MaxUsd = None
    ) -> McpResult:
        """Answer a question in plain language about {of}: SQL is written, checked, run and repaired.

        Gives rows, how far to trust them and why, what else the question could mean, and the cost. Nothing is
        written to the database.
        """
        return await self._begin(question, clarify, max_usd, database=database)

    async def follow_up(self, run: Run, text: ReplyText, max_usd: MaxUsd = None) -> McpResult:
        """Go on from an earlier answer about {of}: 'and by month?'. Nothing is written to the database.

        Of a run with the status needs_choice, the text is the reply: 'B', 'yes', or the user's own words.
        """
        if (await self.service.question(self.who, run)).waiting is None:
            if not text.strip():
                return _failed("text: only where a choice is open it may be empty.")
            return await self._begin(text, None, max_usd, after=run)
        return await self._outcome(await self.service.reply(self.who, run, text))

    async def run_sql(self, sql: Sql, database: DatabaseName = "", rows: Most = 100) -> McpResult:
        """Run one query of your own on {of}.

        Only pure reads pass the guard; rows, bytes, time are limited.
        """
        found = await self.service.run_sql(self.who, sql, database=database, rows=rows)
        if isinstance(found, QueryError):
            return _failed(f"{found.kind.value}: {found.describe()}")
        first, more = _bounded(found.preview(rows)), bool(found.truncated)
        return _result(Rows(columns=found.columns, rows=first, row_count=found.row_count, truncated=more))

    async def schema(self, words: Words = "", database: DatabaseName = "") -> McpResult:
        """Show tables, columns, keys, sample values and what is odd about them in {of}. Read-only.

        All, or the tables that some words may mean.
        """
        opened = await self.service.resources(self.who, database)
        catalog = replace(opened.catalog, name=database or self.service.databases(self.who)[0])
        if words:
            near = await anyio.to_thread.run_sync(opened.columns.tables, words, FOUND)
            catalog = replace(catalog, tables=tuple(filter(None, map(catalog.table, near))))
        if not catalog.tables:
            return _failed("No table fits these words; without words all are shown.")
        made = await anyio.to_thread.run_sync(lambda: render(catalog, budget=SCHEMA_TOKENS))
        text, left_out = printable(made.text), [*made.left_out]
        if len(text) > MOST:
            text, left_out = text[:MOST], [*left_out, f"all behind {MOST:,} characters: give words"]
        tables = len(catalog.tables)
        return _result(SchemaText(dialect=catalog.dialect, tables=tables, text=text, left_out=left_out), text)

    async def search_values(self, words: Words, database: DatabaseName = "") -> McpResult:
        """Find how names, places and codes are written in {of}, by column. Read-only."""
        if not words.strip():
            return _failed("words: say what to look for.")
        return _result(await self.service.search_values(self.who, words, database=database))

    async def trace(self, run: Run) -> McpResult:
        """Show the steps of an answer about {of}. Read-only."""
        question = await self.service.question(self.who, run)
        events = await anyio.to_thread.run_sync(lambda: [*question.folder.events()])
        found = (cleaned(event, self.service.clean) for event in events)
        steps = [step for step in found if step.live][-STEPS:]
        lines = [f"{each.t:.2f} {f'{each.agent} {each.candidate}'.strip()}: {each.gist}" for each in steps]
        cost = spent(await anyio.to_thread.run_sync(question.folder.usage))
        made = Steps(run=question.id, question=question.text, status=question.status, steps=lines, cost=cost)
        return _result(made, "\n".join([f"{made.status}: {made.question}", *lines, cost]))

    async def keep(self, run: Run, note: Note = "") -> McpResult:
        """Keep an answer about {of} as verified, once a person has said that it is right.

        Its question is answered by its query from then on. This writes a note into Quorum's knowledge base,
        and nothing to the database.
        """
        kept = await self.service.keep(self.who, run, note=note)
        return _result(kept, f"Kept, {kept.credit}: {kept.question} {kept.warning}".strip())

    @property
    def _can_ask(self) -> bool:
        """True if the client shows its user a form."""
        capabilities = self.context.session.client_capabilities
        forms = capabilities.elicitation if capabilities else None
        return forms is not None and (forms.form is not None or forms.url is None)

    async def _begin(self, text: str, clarify: bool | None, max_usd: float | None, **asked: str) -> McpResult:
        """Begin a question, which asks back where the user can be asked."""
        usual = self.service.settings.clarify
        wanted = self._can_ask or usual != "off" if clarify is None else clarify
        options: Any = {"clarify": ("on" if usual == "off" else usual) if wanted else "off", **asked}
        options |= {"max_usd": max_usd} if max_usd else {}
        return await self._outcome(await self.service.ask(self.who, text, **options))

    async def go_on(self, run: str) -> McpResult:
        """Go on where the client was asked for a reply: it repeats its call with that."""
        question = await self.service.question(self.who, run)
        given = (self.params.input_responses or {}).get("reply")
        if question.waiting and isinstance(given, types.ElicitResult):
            if (reply := _reply(question, given)) is None:
                return _needs_choice(question)
            question = await self.service.reply(self.who, run, reply)
        return await self._outcome(question)

    async def _outcome(self, question: Question) -> McpResult:
        """Follow a question to its answer, or to what has to be chosen; a cancelled call cancels it."""
        seen, session = 0, self.context.session
        try:
            while True:
                async for number, step in question.steps(seen):
                    seen = number
                    if step and step.live:
                        await session.report_progress(seen, message=f"{step.agent}: {step.gist}")
                if question.waiting is None:
                    return _answered(await question.answer())
                reply = await self._asked(question)
                if not isinstance(reply, str):
                    return reply
                question = await self.service.reply(self.who, question.id, reply)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(10, shield=True):
                await self.service.cancel(self.who, question.id)
            raise

    async def _asked(self, question: Question) -> McpResult | str:
        """Return the user's reply to a form, or the result that lets the client ask."""
        (message, schema), reply = _form(question), None
        if self._can_ask and self.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
            requests: Any = {"reply": types.ElicitRequest(params=form)}
            return types.InputRequiredResult(input_requests=requests, request_state=question.id)
        with suppress(MCPError):  # it cannot after all
            if self._can_ask:
                given = await self.context.session.elicit_form(message, schema, self.context.request_id)
                reply = _reply(question, given)
        return _needs_choice(question) if reply is None else reply


GIVES: dict[str, type[BaseModel]] = {
    "ask": Asked,
    "follow_up": Asked,
    "run_sql": Rows,
    "schema": SchemaText,
    "search_values": Values,
    "trace": Steps,
    "keep": TaughtBody,
}
"""Results by the tool."""
TAKES = {name: arguments(getattr(ToolCall, name)) for name in GIVES}


def mcp_server(service: Service, caller: Callable[[McpContext], Caller]) -> Server[Any]:
    """Return the MCP server of a service; ``caller`` says who makes a request."""

    async def listed(context: McpContext, _: object) -> types.ListToolsResult:
        who = caller(context)
        mine = [name for name in TAKES if who.sql or name != "run_sql"]
        return types.ListToolsResult(tools=[_declared(name, service.databases(who)) for name in mine])

    async def called(context: McpContext, params: types.CallToolRequestParams) -> McpResult:
        if params.name not in TAKES:
            raise _wrong(f"There is no tool {params.name[:100]!r}; there are {', '.join(TAKES)}.")
        try:
            given = TAKES[params.name].model_validate(params.arguments or {})
        except ValidationError as error:
            return _failed(wrong(error, TAKES[params.name]))
        try:
            call = ToolCall(service, context, caller(context), params)
            if params.request_state:
                return await call.go_on(params.request_state)
            made: McpResult = await getattr(call, params.name)(**dict(given))
            return made
        except QuorumError as error:
            return _failed(service.clean(str(error)))
        except Exception:  # noqa: BLE001 - a fault of ours ends this call only
            _LOG.exception("The tool %s failed.", params.name)
            return _failed(f"{params.name} failed by a fault of Quorum's; the server's log has it.")

    async def resources(*_: object) -> types.ListResourcesResult:  # without it, no resource is declared
        return types.ListResourcesResult(resources=[])

    async def templates(*_: object) -> types.ListResourceTemplatesResult:
        rows = types.ResourceTemplate(uri_template=f"{HEAD}{{run}}{TAIL}", name="rows", mime_type="text/csv")
        return types.ListResourceTemplatesResult(resource_templates=[rows])

    async def read(context: McpContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = params.uri
        if not (uri.startswith(HEAD) and uri.endswith(TAIL)):
            raise _wrong(f"There is no resource {uri[:100]!r}; there are {HEAD}…{TAIL}.")
        try:
            table = await service.rows(caller(context), uri.removeprefix(HEAD).removesuffix(TAIL))
        except QuorumError as error:
            raise _wrong(printable(service.clean(str(error)))) from error
        text = await anyio.to_thread.run_sync(lambda: "".join(csv_lines(table, end="\n")))
        if len(text) > MOST_CSV:
            raise _wrong(f"The rows are longer than {MOST_CSV:,} characters; ask for fewer.")
        csv = types.TextResourceContents(uri=uri, mime_type="text/csv", text=text)
        return types.ReadResourceResult(contents=[csv])

    about: Any = {"version": __version__, "title": "Quorum", "instructions": INSTRUCTIONS}
    lists: Any = {"on_list_resources": resources, "on_list_resource_templates": templates}
    calls: Any = {"on_list_tools": listed, "on_call_tool": called, "on_read_resource": read}
    return Server("quorum", **about, **lists, **calls)


def _declared(name: str, databases: Sequence[str]) -> types.Tool:
    given, made = (each[name].model_json_schema() for each in (TAKES, GIVES))
    if field := given["properties"].get("database"):
        field["enum"] = [*databases, ""]
    of = f"the database{'s' * (len(databases) != 1)} {', '.join(databases)}"
    hints = {"read_only_hint": name != "keep", "destructive_hint": False, "open_world_hint": False}
    return types.Tool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        description=" ".join(getattr(ToolCall, name).__doc__.split()).replace("{of}", of),
        input_schema=given,
        output_schema=made,
        annotations=types.ToolAnnotations(**hints),
    )


def _wrong(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)


def _result(found: BaseModel, text: str = "", *links: types.ResourceLink) -> types.CallToolResult:
    """Return a result as structured content without empty fields, and as text."""
    made = found.model_dump(mode="json", exclude_defaults=True)
    said = types.TextContent(text=text or json.dumps(made, ensure_ascii=False))
    return types.CallToolResult(content=[said, *links], structured_content=made)


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=printable(text))], is_error=True)


def _answered(answer: Answer) -> types.CallToolResult:
    uri = f"{HEAD}{answer.run_id}{TAIL}" if answer.result_file else ""
    made = Asked(
        **_rows_of(answer, len(answer.rows)),
        status=answer.status,
        run=answer.run_id,
        question=answer.became or answer.question,
        says=answer.words or answer.missing or answer.error or answer.summary,
        rows_uri=uri,
        confidence=None if (rated := rating(answer)) is None else round(rated, 2),
        confidence_because=f"{trust(answer)[0]}: {answer.grounds}" if answer.columns else "",
        doubts=answer.doubts,
        assumes=answer.assumptions,
        other_readings=[Reading(says=each.says, **_rows_of(each)) for each in answer.readings],
        warnings=[*answer.disagreement, *notices(answer)],
        cost=spent(answer.usage) if answer.usage else "",
        usd=answer.usage.get("usd"),
    )
    link = types.ResourceLink(uri=uri, name="rows.csv", mime_type="text/csv", description=rows_note(answer))
    return _result(made, f"{answer.to_markdown()}\n\nRun: {answer.run_id}", *([link] if uri else []))


def _needs_choice(question: Question) -> types.CallToolResult:
    says, asked = _form(question)[0], question.waiting
    given = asked.choices if isinstance(asked, Clarification) else []
    choices = [Reading(says=each.says, reply=each.label, **_rows_of(each)) for each in given]
    how = f"Ask the user; then call follow_up with the run {question.id} and the reply as text."
    about = {"status": "needs_choice", "run": question.id, "question": question.text}
    return _result(Asked(says=says, choices=choices, **about), f"{says}\n\n{how}")


def _form(question: Question) -> tuple[str, dict[str, Any]]:
    """Return what the user is asked, and the schema of the reply."""
    choice: dict[str, Any] = {"type": "string", "title": "Choice", "enum": ["yes", "no", "all"]}
    fields, asked = {"choice": choice}, question.waiting
    assert asked is not None
    if isinstance(asked, Clarification):
        choice["enum"] = [each.label for each in asked.choices]
        if asked.own_words:
            fields["words"] = {"type": "string", "title": "Or in your own words"}
    message = "\n".join(map(printable, asks(asked, question.database)))
    return message, {"type": "object", "properties": fields}


def _reply(question: Question, given: types.ElicitResult) -> str | None:
    """Return the reply of a form; None where the user put it off."""
    content = given.content or {} if given.action == "accept" else {}
    said = str(content.get("words") or content.get("choice") or "")
    usual = "" if isinstance(question.waiting, Clarification) else "no"
    return None if given.action == "cancel" else said or usual


def _rows_of(found: Any, most: int = FEW) -> dict[str, Any]:
    """Return the query and the first rows of an answer, a reading or a choice."""
    rows = {name: getattr(found, name) for name in ("sql", "columns", "row_count")}
    return rows | {"rows": _bounded(found.rows[:most]), "truncated": getattr(found, "truncated", False)}


def _bounded(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return the first rows that fit, long texts cut."""
    made, size = list[list[Any]](), 0
    for row in rows:
        made.append([f"{v[:LONG]}…" if isinstance(v, str) and len(v) > LONG else v for v in row])
        if (size := size + sum(len(str(v)) for v in made[-1])) > MOST:
            break
    return made
