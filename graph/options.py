"""Options of a run. Each is declared here, once, with its type, default, unit, choices and description.

From ``Options`` derive ``RunOptions``, the graph's context schema and so LangGraph Studio's form;
``quorum.settings.Settings`` with environment variables and the keys of ``quorum.toml``; the flags of the
commands (``quorum.commands.options``); what a resumed run takes anew; what an evaluation is known by;
and the README's table (``tests.quorum.options_table``).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema

from quorum.graph.strategies import STRATEGIES
from quorum.graph.values import (
    AUTO,
    Bytes,
    MaybePlace,
    Names,
    Place,
    Prices,
    Seconds,
    StoppingRule,
    Strategy,
    Switches,
)
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import SAMPLE, anchored

DATA, MODELS, AGENTS, LIMITS, PROMPTS = "Data", "Models", "Agents and votes", "Limits", "Prompts and places"
"""Sections of ``--help``."""


@dataclass(frozen=True)
class Option:
    """What people see of an option beside its name, type, bounds and default, and where it counts.

    Attributes:
        section: Heading under which ``--help`` lists it.
        meaning: One line; code in backticks.
        unit: Of the number, e.g. ``seconds``.
        choices: All the values there are, where the type does not say.
        unset: What holds where the default says nothing, e.g. "the recipe's".
        metavar: Stands for the value in ``--help``; without one the unit's, or N.
        flag: A second, shorter spelling of its flag.
        repeated: The flag may be given several times.
        variables: Environment variables that count beside ``QUORUM_<NAME>``.
        secret: The value may hold a secret; messages never show it.
        begins: Makes a relative value start at a folder: that of ``quorum.toml``, else the working directory.
        anew: May be given anew when a run is resumed.
        measured: Part of what an evaluation measures; not so places and the way to the endpoint.
    """

    section: str
    meaning: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    unset: str = ""
    metavar: str = ""
    flag: str = ""
    repeated: bool = False
    variables: tuple[str, ...] = ()
    secret: bool = False
    begins: Callable[[Any, Path], Any] | None = None
    anew: bool = False
    measured: bool = True

    @property
    def description(self) -> str:
        """The meaning with its unit, as plain text."""
        unit = f" ({self.unit})" if self.unit and self.unit not in self.meaning else ""
        return self.meaning.replace("`", "") + unit

    @property
    def explanation(self) -> str:
        """The meaning with the choices there are; code in backticks."""
        choices = ", ".join(f"`{choice}`" for choice in self.choices)
        return f"{self.meaning}; one of {choices}" if choices else self.meaning

    def shown(self, default: Any) -> str:
        """A default for people, with its unit; empty where there is none."""
        if isinstance(default, bool):
            return "on" if default else "off"
        if self.unset or default is None or default in ("", [], {}):
            return self.unset
        if self.unit == "bytes":
            return f"{default / 2**20:g} MiB"
        number = f"{default:,.10g}" if isinstance(default, int | float) else str(default)
        return f"{number} {self.unit}".strip()

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The type's JSON schema with description and choices, which Studio's form shows."""
        enum = {"enum": list(self.choices)} if self.choices else {}
        return handler(core) | {"description": self.description} | enum


def option(
    default: Any,
    section: str,
    meaning: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    **more: Any,
) -> Any:
    """A field that is an option: its default and bounds, and what ``Option`` holds."""
    field = Field(default, ge=ge, gt=gt, le=le, repr=not more.get("secret"))
    field.metadata.append(Option(section, meaning, **more))
    return field


def _below(path: str | Path, folder: Path) -> str | Path:
    return path if str(path).startswith("~") else folder / path


_PRICES = 'dollars per million tokens: `{"my-model": {"input": 2.0, "cached": 0.5, "output": 8.0}}`'
_RECIPES = "the recipe's"
_STRATEGIES = (AUTO, *STRATEGIES)
_ELSEWHERE: dict[str, Any] = {"anew": True, "measured": False}
_database = partial(
    option,
    section=DATA,
    meaning="URL such as `sqlite:///shop.db` or `duckdb:///…`, a database file, or `sample`",
    metavar="URL",
    flag="--db",
    secret=True,
    begins=anchored,
    measured=False,
)
_models = partial(
    option,
    section=MODELS,
    meaning="`provider:name`, e.g. `openai:gpt-4.1`, or `offline`, `replay:FILE`, `scripted:FILE`; "
    "several share the candidates as experts",
    metavar="SPEC",
    flag="--model",
    repeated=True,
)


def _place(default: Path | None, section: str, meaning: str, **more: Any) -> Any:
    return option(default, section, meaning, begins=_below, **more)


def _endpoint(default: Any, meaning: str, **more: Any) -> Any:
    return option(default, MODELS, meaning, **_ELSEWHERE, **more)


class Options(BaseModel):
    """The options of a run, where no model and no database is set."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    database: str = _database("")
    documents: MaybePlace = _place(
        None, DATA, "folder of documents that define business terms", metavar="DIR", flag="--docs"
    )
    demonstrations: MaybePlace = _place(
        None, DATA, "JSON lines of questions with their SQL, for recipes that show examples", metavar="FILE"
    )
    models: Names = _models([])
    base_url: str = _endpoint(
        "", "an OpenAI-compatible endpoint", metavar="URL", secret=True, variables=("OPENAI_BASE_URL",)
    )
    timeout: Seconds = _endpoint(120.0, "longest silence of a model", unit="seconds")
    requests_per_second: float | None = _endpoint(None, "model calls per second, all together", gt=0)
    prices: Prices = _endpoint({}, _PRICES, unset="built in", metavar="JSON")
    recipe: str = option(
        "quorum", AGENTS, "which agents run, in which order; see `quorum recipes`", metavar="NAME"
    )
    switches: Switches = option(
        {},
        AGENTS,
        "the recipe's switches and limits, set otherwise, e.g. `sql_critique=false`",
        metavar="NAME=VALUE",
        flag="--switch",
        repeated=True,
    )
    votes: int | None = option(None, AGENTS, "candidates that vote, at most", unset=_RECIPES, ge=1, le=64)
    strategy: Strategy = option(
        AUTO, AGENTS, "how candidates vote; auto is the recipe's way", choices=_STRATEGIES
    )
    stopping: StoppingRule = option(
        AUTO,
        AGENTS,
        "when enough candidates have voted: `never`, `decided`, `beta:0.9`; auto is the recipe's rule",
        metavar="RULE",
    )
    clarify: bool = option(False, AGENTS, "ask which answer is meant when strong ones disagree")
    abstain_below: float = option(
        0.0,
        AGENTS,
        "answers of less confidence are shown as best effort only; 0.25 is a good value",
        ge=0,
        le=1,
    )
    temperature: float | None = option(
        None,
        AGENTS,
        "of a model's candidates after its first, which is drawn at 0",
        unset=_RECIPES,
        ge=0,
        le=2,
    )
    seed: int = option(0, AGENTS, "start of everything drawn at random")
    max_calls: int | None = option(None, LIMITS, "model calls per question", ge=1, anew=True)
    max_usd: float | None = option(
        None, LIMITS, "dollars per question; may be exceeded by the calls under way", gt=0, anew=True
    )
    deadline: Seconds | None = option(
        None, LIMITS, "wall clock per question: `90`, `90s`, `5m`", unit="seconds", anew=True
    )
    max_rows: int = option(100_000, LIMITS, "rows kept of one result", unit="rows", ge=1)
    max_bytes: Bytes = option(64 * 2**20, LIMITS, "bytes kept of one result", unit="bytes", ge=1024)
    query_timeout: Seconds = option(60.0, LIMITS, "longest time of one query", unit="seconds")
    schema_tokens: int = option(
        30_000,
        PROMPTS,
        "budget of the schema text; only descriptions and samples ever give way",
        unit="tokens",
        ge=1,
    )
    link_above: int = option(
        60_000,
        PROMPTS,
        "longer schema texts are narrowed by the SchemaLinker before planning",
        unit="tokens",
        ge=1,
    )
    retrieval: Literal["lexical", "hybrid"] = option(
        "lexical", PROMPTS, "how documents are found; hybrid adds embeddings"
    )
    embedding_model: str = option(
        "",
        PROMPTS,
        "a sentence-transformers model, for hybrid retrieval (extra `embeddings`)",
        metavar="NAME",
    )
    home: Place = _place(
        Path(".quorum"),
        PROMPTS,
        "folder of traces, the sample database and expert weights",
        metavar="DIR",
        **_ELSEWHERE,
    )

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """What is declared of each option, in order, by name."""
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
        """``values`` in which every relative place starts at ``folder``."""
        found = dict(values)
        for name, option in cls.declared().items():
            if option.begins and found.get(name) and isinstance(found[name], str | Path):
                found[name] = option.begins(found[name], folder)
        return found

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
            source = f" ({sources[name]})" if sources else ""
            lines.append(f"{where}{value}{source}: {str(problem['msg']).removeprefix('Value error, ')}.")
        return ConfigurationError("An option does not fit: " + " ".join(lines))

    def as_dict(self) -> dict[str, Any]:
        """All values, ready for JSON."""
        return self.model_dump(mode="json")


class RunOptions(Options):
    """Options of a run, those of ``Options``: every one has a default, so that Studio can show a form.

    Raises:
        ConfigurationError: A value does not fit, or two of them do not fit together.
    """

    database: str = _database(SAMPLE)
    models: Names = _models(["offline"])

    _attached: object = PrivateAttr(None)  # the run's open context (graph.live)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
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
            raise ConfigurationError("Hybrid retrieval needs embedding_model, a sentence-transformers model.")
        if self.votes is not None and len(self.models) > self.votes:
            raise ConfigurationError(
                f"{len(self.models)} models cannot share {self.votes} votes: some would never be asked.",
                hint=f"Ask for at least {len(self.models)} votes, or name fewer models.",
            )

    @property
    def attached(self) -> object:
        """The run's open context."""
        return self._attached

    @attached.setter
    def attached(self, context: object) -> None:
        self._attached = context

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunOptions:
        """Options from ``run.json``; keys of other versions are left out."""
        return cls(**{name: value for name, value in values.items() if name in cls.model_fields})
