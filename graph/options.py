"""Options of a run: the graph's context schema, plain values that LangGraph Studio shows as a form."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from quorum.graph.consensus import find_strategy
from quorum.graph.stopping import find_stopping
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import SAMPLE


@lru_cache(maxsize=8)
def _adapters(options: type[RunOptions]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(options)
    return {item.name: TypeAdapter(hints[item.name]) for item in fields(options)}


@dataclass(eq=False)
class RunOptions:
    """Options of a run. Every field is plain and has a default, so Studio can show a form.

    Attributes:
        database: URL of the database, or ``sample``.
        switches: The recipe's switches and limits that are set otherwise.
        models: Specs ``provider:name``; several share the candidates between them as experts.
        votes: Candidates at most; None for the recipe's own number.
        documents: Folder of documents that define business terms; empty for none.
        demonstrations: File of questions with their SQL, for recipes that show examples; empty for none.
        strategy: Consensus strategy; ``auto`` is the recipe's own.
        stopping: When enough candidates have voted (``graph.stopping``); ``auto`` is the recipe's own rule.
        clarify: Ask the user which answer is meant when strong ones disagree: the run interrupts.
        temperature: Of the candidates that are sampled; None for the recipe's own.
        abstain_below: An answer of less confidence is withheld: shown as a best effort only.
        max_calls, max_usd, deadline: Hard limits (calls, dollars, seconds); None for no limit.
        max_rows, max_bytes, query_seconds: Limits of one query.
        schema_tokens: Budget for descriptions and samples in the schema text.
        link_above: Schema texts of more tokens than this are linked before planning.
        retrieval: ``lexical``, or ``hybrid`` with ``embedding_model``.
        home: Folder for runs, the sample database and expert weights.
    """

    database: str = SAMPLE
    recipe: str = "quorum"
    switches: dict[str, Any] = field(default_factory=dict)
    models: list[str] = field(default_factory=lambda: ["offline"])
    votes: int | None = None
    documents: str = ""
    demonstrations: str = ""
    strategy: str = "auto"
    stopping: str = "auto"
    clarify: bool = False
    temperature: float | None = None
    abstain_below: float = 0.0
    seed: int = 0
    base_url: str = ""
    timeout: float = 120.0
    requests_per_second: float | None = None
    max_calls: int | None = None
    max_usd: float | None = None
    deadline: float | None = None
    max_rows: int = 100_000
    max_bytes: int = 64 * 2**20
    query_seconds: float = 60.0
    schema_tokens: int = 30_000
    link_above: int = 60_000
    retrieval: str = "lexical"
    embedding_model: str = ""
    prices: dict[str, dict[str, float]] = field(default_factory=dict)
    home: str = ".quorum"

    def __post_init__(self) -> None:
        self._check_types()
        if self.votes is not None and self.votes < 1:
            raise ConfigurationError(f"votes is {self.votes}; at least one candidate is needed.")
        if not 0 <= self.abstain_below <= 1:
            raise ConfigurationError(f"abstain_below is {self.abstain_below:g}; it lies between 0 and 1.")
        if not self.models:
            raise ConfigurationError("No model is configured.", hint="Name one, e.g. openai:gpt-4.1.")
        if self.retrieval not in ("lexical", "hybrid"):
            raise ConfigurationError(f"retrieval is {self.retrieval!r}; it is lexical or hybrid.")
        if self.retrieval == "hybrid" and not self.embedding_model:
            raise ConfigurationError("Hybrid retrieval needs embedding_model, a sentence-transformers model.")
        if self.strategy != "auto":
            find_strategy(self.strategy)
        if self.stopping != "auto":
            find_stopping(self.stopping)
        self.models = list(dict.fromkeys(self.models))
        if self.votes is not None and len(self.models) > self.votes:
            raise ConfigurationError(
                f"{len(self.models)} models cannot share {self.votes} votes: some would never be asked.",
                hint=f"Ask for at least {len(self.models)} votes, or name fewer models.",
            )

    def _check_types(self) -> None:
        """Make each value one of its field's type, as a form or JSON may give it.

        Raises:
            ConfigurationError: A value cannot be one.
        """
        for name, adapter in _adapters(type(self)).items():  # type: ignore[arg-type]  # classes hash
            try:
                setattr(self, name, adapter.validate_python(getattr(self, name)))
            except ValidationError as error:
                said = error.errors(include_url=False)[0]["msg"]
                raise ConfigurationError(f"{name} is {getattr(self, name)!r}: {said}.") from None

    def api_key(self) -> str:
        """The models' key; not a field, so that no form, trace or checkpoint ever holds it."""
        return ""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunOptions:
        """Options from ``run.json``; keys of other versions are left out."""
        known = {item.name for item in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
