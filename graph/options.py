"""Options of a run. Each is declared here, once, with its type, default, unit, choices and description.

From ``Options`` derive ``RunOptions``, the graph's context schema and so LangGraph Studio's form;
``quorum.settings.Settings`` with environment variables and the keys of ``quorum.toml``; the flags of the
commands (``quorum.commands.options``); what a resumed run may change; what an evaluation is known by; and the
table of docs/settings.md (``tests.quorum.options_table``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic import ModelWrapValidatorHandler as Validate
from pydantic_core import CoreSchema

from quorum.agents.role import GROUPS, check_roles, find_role
from quorum.graph import values
from quorum.graph.strategies import STRATEGIES
from quorum.graph.values import AUTO
from quorum.knowledge.errors import ConfigurationError, in_words
from quorum.tools.query import Limits
from quorum.tools.urls import SAMPLE, anchored, urls_in


@dataclass(frozen=True)
class Option:
    """An option's description and use, beside its name, type, bounds and default.

    Attributes:
        meaning: One line; code in backticks.
        unit: Of the number, e.g. ``seconds``.
        choices: All the values there are; those of a ``Literal`` need not be named.
        unset: What holds by default, e.g. "the recipe's", if the default value does not say.
        metavar: Stands for the value in ``--help``; without one the unit's, NAME or N.
        flag: Another, shorter spelling of its flag.
        bare: The value that its flag stands for by itself.
        variable: An environment variable that counts beside ``QUORUM_<NAME>``.
        secret: The value may hold a secret; messages never show it.
        on_resume: May be given again when a run is resumed.
        measured: Part of what an evaluation measures; not so places and the way to the endpoint.
    """

    meaning: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    unset: str = ""
    metavar: str = ""
    flag: str = ""
    bare: str = ""
    variable: str = ""
    secret: bool = False
    on_resume: bool = False
    measured: bool = True

    @property
    def explanation(self) -> str:
        """The meaning with the choices there are; code in backticks."""
        choices = ", ".join(f"`{choice}`" for choice in self.choices)
        return f"{self.meaning}; one of {choices}" if choices else self.meaning

    def shown(self, default: Any) -> str:
        """The default with its unit, for people; empty for none."""
        if self.unset or default is None or default in ("", [], {}):
            return self.unset
        if isinstance(default, bool):
            return "on" if default else "off"
        if self.unit == "bytes":
            return f"{default / 2**20:g} MiB"
        return f"{default:,.10g} {self.unit}".strip() if isinstance(default, int | float) else str(default)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The type's JSON schema with description and choices, which Studio's form shows."""
        unit = f" ({self.unit})" if self.unit not in self.meaning else ""
        enum = {"enum": list(self.choices)} if self.choices else {}
        return handler(core) | {"description": self.meaning.replace("`", "") + unit} | enum


def option(default: Any, meaning: str, **more: Any) -> Any:
    """A field that is an option: default, bounds (``ge``, ``gt``, ``le``) and what ``Option`` holds."""
    bounds = {name: more.pop(name) for name in ("ge", "gt", "le") if name in more}
    field = Field(default, repr=not more.get("secret"), **bounds)
    field.metadata.append(Option(meaning, **more))
    return field


_ELSEWHERE: dict[str, Any] = {"on_resume": True, "measured": False}
_PRICES = 'dollars per million tokens, e.g. `my-model={"input": 2.0, "cached": 0.5, "output": 8.0}`'
_RECIPES = "the recipe's"
_ROLES = ", ".join(f"`{group}`" for group in GROUPS)


class Options(BaseModel):
    """The options of a run, in the order of ``--help`` and of docs/settings.md."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    database: values.DatabaseUrls = option(
        [SAMPLE],
        "URL such as `sqlite:///shop.db`, a database file, a data file or a folder of them, or `sample`; "
        "several are read in one question",
        unset="none",
        metavar="URL",
        flag="--db",
        secret=True,
        measured=False,
    )
    catalog_age: values.Age = option(
        3600.0,
        "how long the cached catalog of a database is used; 0 reads the database each time",
        unit="seconds",
        **_ELSEWHERE,
    )
    documents: values.MaybePath = option(
        None,
        "folder of documents that define business terms, or describe columns as dbt's do",
        metavar="DIR",
        flag="--docs",
    )
    kb: values.MaybePath = option(
        None,
        "folder of verified answers and notes (`quorum keep`, `quorum kb`)",
        unset="`kb` in home",
        metavar="DIR",
    )
    explored: values.MaybePath = option(
        None,
        "folder of what `quorum explore` learned of databases",
        unset="`explored` in home",
        metavar="DIR",
    )
    demonstrations: values.MaybePath = option(
        None,
        "questions with their SQL, as JSON lines or as Spider and BIRD publish theirs; for few-shot recipes",
        metavar="FILE",
    )
    show: values.Names = option(
        [],
        "only these tables are seen: patterns such as `public.*`, or `tag:public`",
        unset="all",
        metavar="PATTERN",
    )
    hide: values.Names = option(
        [],
        "tables that nothing shows and no query may read: patterns such as `hr.*`, or `tag:secret`",
        metavar="PATTERN",
    )
    mask: values.Names = option(
        [],
        "columns of which queries may use the values, but nothing shows them: patterns such as "
        "`customers.email`, `*.ssn`, or `tag:pii`",
        metavar="PATTERN",
    )
    models: values.Names = option(
        ["offline"],
        "`provider:name` such as `openai:gpt-4.1`, `offline` or `replay:FILE`; several vote",
        unset="none",
        metavar="SPEC",
        flag="--model",
    )
    model_for: values.RoleModels = option(
        {},
        f"a role's own model, such as `self_refiner=openai:gpt-4.1`, or a group's ({_ROLES}); it has no vote",
        metavar="ROLE=SPEC",
    )
    base_url: str = option(
        "",
        "an OpenAI-compatible endpoint",
        metavar="URL",
        variable="OPENAI_BASE_URL",
        secret=True,
        **_ELSEWHERE,
    )
    timeout: values.Seconds = option(120.0, "longest silence of a model", unit="seconds", **_ELSEWHERE)
    requests_per_second: float | None = option(
        None, "model calls per second, all together", gt=0, **_ELSEWHERE
    )
    prices: values.Prices = option(
        {}, _PRICES, unset="built in", metavar="NAME=JSON", flag="--price", **_ELSEWHERE
    )
    recipe: str = option(
        "quorum",
        "which agents run, in which order; see `quorum recipes`; your own is `package.module:NAME`",
        metavar="NAME",
    )
    preset: str = option(
        "", "a named set of the recipe's switches, such as `v1` of `reforce`", metavar="NAME"
    )
    switches: values.Switches = option(
        {},
        "the recipe's switches and limits, e.g. `max_refinements=2`",
        metavar="NAME=VALUE",
        flag="--switch",
    )
    votes: int | None = option(None, "candidates that vote, at most", unset=_RECIPES, ge=1, le=64)
    strategy: values.StrategyName = option(
        AUTO, "how candidates vote; auto is the recipe's way", choices=(AUTO, *STRATEGIES)
    )
    stopping: values.StoppingRule = option(
        AUTO,
        "when enough have voted: `never`, `decided`, `beta:0.9`; auto is the recipe's rule",
        metavar="RULE",
    )
    clarify: values.Clarify = option(
        "off",
        "ask which reading is meant where another shows something else; `on`: if the answer is doubtful",
        metavar="[WHEN]",
        bare="on",
    )
    abstain_below: float = option(
        0.0, "answers of less confidence are shown as best effort only, e.g. below 0.4", ge=0, le=1
    )
    temperature: float | None = option(
        None, "of a model's candidates after its first (at 0), or of all roles", unset=_RECIPES, ge=0, le=2
    )
    seed: int = option(0, "start of everything drawn at random")
    max_calls: int | None = option(None, "model calls per question", ge=1, on_resume=True)
    max_usd: float | None = option(
        None, "dollars per question; may be exceeded by the calls under way", gt=0, on_resume=True
    )
    deadline: values.Seconds | None = option(
        None, "wall clock per question: `90`, `90s`, `5m`", unit="seconds", on_resume=True
    )
    max_run_bytes: values.Bytes | None = option(
        None,
        "bytes that a question's queries may read together, as the engine says, else as estimated",
        unit="bytes",
        ge=1,
        on_resume=True,
    )
    approve: values.ApprovalRule = option(
        values.NEVER,
        "before which queries you are asked: `never`, `always`, `costly` (reading more than 10 GiB), or a "
        "size such as `1GiB`",
        metavar="WHEN",
        on_resume=True,
        measured=False,
    )
    max_bytes: values.Bytes | None = option(
        None,
        "bytes that one query may read, as estimated before it runs, and as the server counts where it can",
        unit="bytes",
        ge=1,
        on_resume=True,
    )
    max_rows: int = option(100_000, "rows kept of one result", unit="rows", ge=1)
    result_bytes: values.Bytes = option(64 * 2**20, "bytes kept of one result", unit="bytes", ge=1024)
    query_timeout: values.Seconds = option(60.0, "longest time of one query", unit="seconds")
    schema_tokens: int = option(
        30_000, "budget of the schema text; only descriptions and samples ever give way", unit="tokens", ge=1
    )
    link_above: int = option(
        60_000,
        "longer schemas, whole and with documents, are linked before planning",
        unit="tokens",
        ge=1,
    )
    document_tokens: int = option(
        30_000, "a question's own documents are shown whole up to this, else passages", unit="tokens", ge=0
    )
    matched_values: int | None = option(
        None,
        "values of the database that words of the question resemble, shown at most",
        unset=_RECIPES,
        ge=0,
    )
    retrieval: Literal["lexical", "hybrid"] = option(
        "lexical", "how documents are found; hybrid adds embeddings"
    )
    embedding_model: str = option(
        "",
        "for hybrid retrieval: `openai:NAME`, asked at `base_url`, or a sentence-transformers model "
        "(both need the extra `embeddings`)",
        metavar="NAME",
    )
    checkpoints: str = option(
        "",
        "a PostgreSQL database for LangGraph's checkpoints and the leases of runs, where several processes "
        "share `home`; `postgresql://user:password@host/name`",
        unset="in each run's folder",
        metavar="URL",
        secret=True,
        **_ELSEWHERE,
    )
    home: values.UserPath = option(
        Path(".quorum"),
        "folder of traces, the sample database and expert weights",
        metavar="DIR",
        **_ELSEWHERE,
    )

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """Return the declaration of each option by name, in order."""
        found = {}
        for name, field in cls.model_fields.items():
            found[name] = next(item for item in field.metadata if isinstance(item, Option))
            if get_origin(field.annotation) is Literal:
                found[name] = replace(found[name], choices=get_args(field.annotation))
        return found

    @classmethod
    def check_names(cls, names: Iterable[str], where: str = "There is") -> None:
        """Raise if one of ``names`` is no option.

        Raises:
            ConfigurationError: The message begins with ``where`` and suggests the nearest name.
        """
        for name in names:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(name, cls.model_fields, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(cls.model_fields)}."
                raise ConfigurationError(f"{where} no option {name!r}.", hint=hint)

    @classmethod
    def placed(cls, values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """``values`` in which every relative place, and a database file's, starts at ``folder``."""
        placed = dict(values)
        for name in cls.model_fields.keys() & values.keys():
            kind, value = cls.model_fields[name].annotation, values[name]
            if name == "database":
                urls = urls_in(value) if isinstance(value, str) else value
                if isinstance(urls, list) and all(isinstance(url, str) for url in urls):
                    placed[name] = [anchored(url, folder) for url in urls]
                continue
            if not value or not isinstance(value, str | Path):
                continue  # nothing, or nothing that fits: validation says so
            if Path in (kind, *get_args(kind)) and not str(value).startswith("~"):
                placed[name] = folder / value
        return placed

    @classmethod
    def explained(
        cls, error: ValidationError, sources: Mapping[str, str] | None = None
    ) -> ConfigurationError:
        """A ValidationError in people's words, without secret values.

        Args:
            sources: Where each value comes from.
        """
        declared, lines = cls.declared(), []
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            where = ".".join(map(str, problem["loc"]))
            value = "" if name in declared and declared[name].secret else f" = {problem['input']!r}"
            source = f" ({sources[name]})" if sources and name in sources else ""
            lines.append(f"{where}{value}{source}: {in_words(problem)}.")
        return ConfigurationError("An option does not fit: " + " ".join(lines))

    @property
    def specs(self) -> list[str]:
        """All the models: those that vote, then those of single roles."""
        return list(dict.fromkeys([*self.models, *self.model_for.values()]))

    @property
    def query_limits(self) -> Limits:
        """The limits of each query."""
        return Limits(self.max_rows, self.result_bytes, self.query_timeout, scan=self.max_bytes)

    def as_dict(self) -> dict[str, Any]:
        """All values, ready for JSON."""
        return self.model_dump(mode="json")


class RunOptions(Options):
    """The options of a run, which fit together: the graph's context, and Studio's form.

    Raises:
        ConfigurationError: A value does not fit, or two of them do not fit together.
    """

    handles: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """What a graph that opens its own context gives ``open_context`` beside these; a subclass sets it."""

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, values: Any, validate: Validate[Self]) -> Self:
        if isinstance(values, Mapping):
            cls.check_names(values)
        try:
            options = validate(values)
        except ValidationError as error:
            raise cls.explained(error) from None
        options._check_together()
        return options

    def _check_together(self) -> None:
        if not self.models:
            raise ConfigurationError("No model is configured.", hint="Name one, e.g. openai:gpt-4.1.")
        if self.retrieval == "hybrid" and not self.embedding_model:
            raise ConfigurationError(
                "Hybrid retrieval needs embedding_model, e.g. openai:text-embedding-3-small."
            )
        if self.votes is not None and len(self.models) > self.votes:
            raise ConfigurationError(
                f"{len(self.models)} models cannot share {self.votes} votes: some would never be asked.",
                hint=f"Ask for at least {len(self.models)} votes, or name fewer models.",
            )
        if not all(name in GROUPS or find_role(name) for name in self.model_for):
            from quorum.graph.recipes import find_recipe

            find_recipe(self.recipe)  # a plug-in's roles are known from then on
            check_roles(self.model_for)
        writing = [name for name in self.model_for if name in ("writing", *GROUPS["writing"])]
        if len(self.models) > 1 and writing:
            raise ConfigurationError(
                f"Several models vote, and model_for names one that writes for all ({', '.join(writing)}).",
                hint="Each is weighed by what it wrote: name one model, or none for the writer.",
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunOptions:
        """Options from ``run.json``; keys of other versions are left out."""
        return cls(**{name: value for name, value in values.items() if name in cls.model_fields})
