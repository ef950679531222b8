"""What an evaluation is, and whether a folder holds the same one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum import __version__
from quorum.evals.questions import ID_HINT, EvalQuestion, GoldParts, Suite, is_id
from quorum.evals.records import Manifest, PlannedQuestion
from quorum.graph.options import RunOptions
from quorum.graph.recipes import recipe_of
from quorum.graph.values import NEVER
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import ConfigurationError, read_errors
from quorum.knowledge.verified import KnowledgeBase
from quorum.tools.triplet_store import FILE as TRIPLETS

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from quorum.evals.scorers.base import Scorer

_DIGITS = 16


@dataclass(frozen=True)
class Evaluation:
    """The questions, options and folder of a run.

    Attributes:
        options: Of every run; ``database`` and ``home`` are set for each question.
        questions: Chosen of the suite, in order.
        folder: Where the evaluation is kept.
        concurrency: Questions at a time.
        shard: (2, 8) is the second of eight.
        gold: Show each question only those parts of the schema that its gold needs, where that is known; None
            in all ordinary evaluations.
        simulated: A user who knows the gold is asked where ``options.clarify`` asks one
            (``quorum.evals.running.attempts``).
        api_key, chat_models: As ``quorum.graph.resources.open_resources``.
        fixed: Going on needs the same knowledge base and explorations; False where what is kept meanwhile may
            count for the questions that are left.
        max_usd_total: Dollars for all questions (``quorum.evals.running.total_budget``); infinite where what
            is spent is only noted, for a limit later; None if it is not.
    """

    suite: Suite
    options: RunOptions
    questions: Sequence[EvalQuestion]
    folder: Path
    concurrency: int = 8
    shard: tuple[int, int] = (1, 1)
    gold: GoldParts | None = None
    simulated: bool = False
    api_key: str = field(default="", repr=False)
    chat_models: Mapping[str, BaseChatModel] = field(default_factory=dict)
    fixed: bool = True
    max_usd_total: float | None = None

    def check(self) -> None:
        """Check what needs no open handles.

        Raises:
            ConfigurationError: There is no such recipe or switch, the run would ask a person, or a
                question's id cannot name a folder of its own.
        """
        if self.concurrency < 1:
            raise ConfigurationError(
                f"concurrency is {self.concurrency}; ask one question at a time at least."
            )
        recipe_of(self.options)
        if (self.options.clarify != "off") != self.simulated:
            raise ConfigurationError(
                "An evaluation has nobody to ask which answer is meant.",
                hint="Say --clarify off, or --clarify gold for a simulated user who knows the gold.",
            )
        if self.options.approve != NEVER:
            raise ConfigurationError(
                f"An evaluation has nobody to ask before queries run (approve={self.options.approve}).",
                hint="Say --approve never; max_bytes and max_run_bytes limit what is read.",
            )
        seen = Counter(question.id.casefold() for question in self.questions)
        for question in self.questions:
            if not is_id(question.id):
                raise ConfigurationError(f"{question.id!r} cannot be a question's id.", hint=ID_HINT)
            if seen[question.id.casefold()] > 1:
                raise ConfigurationError(f"Two questions have the id {question.id!r}.", hint="Rename one.")

    def manifest(self) -> Manifest:
        """Return its description; reads the documents, demonstrations and gold files that it names.

        Raises:
            ConfigurationError: They cannot be read.
        """
        scorer = self.suite.scorer
        options = (
            self.options if self.fixed else self.options.model_copy(update={"kb": None, "explored": None})
        )
        return Manifest(
            suite=self.suite.name,
            rules=scorer.rules,
            metrics=tuple(
                {name: value for name, value in asdict(each).items() if name != "only" or value}
                for each in scorer.metrics
            ),
            options=_kept(options) | ({"gold": self.gold} if self.gold else {}),
            asked=tuple(_asked(question, scorer) for question in self.questions),
            shard=f"{self.shard[0]}/{self.shard[1]}",
            missing=self.suite.missing,
            version=__version__,
            started=now(),
        )


def check_same(before: Manifest, now: Manifest, folder: Path) -> None:
    """Check that ``folder``, which holds ``before``, can be continued as ``now``; more questions are fine.

    Raises:
        ConfigurationError: It cannot; the message names what differs.
    """
    known = ("suite", "rules", "shard", "version")
    pairs = {name: (getattr(before, name), getattr(now, name)) for name in known}
    pairs |= {
        name: (before.options.get(name), now.options.get(name)) for name in now.options | before.options
    }
    differs = [f"{name} was {old!r} and is {new!r}" for name, (old, new) in pairs.items() if old != new]
    if differs:
        raise ConfigurationError(
            f"{folder} holds an evaluation with other options: {'; '.join(differs)}.",
            hint="Give another --out, or the same options to go on with it.",
        )
    if before.metrics != now.metrics:
        raise ConfigurationError(
            f"{folder} holds an evaluation that was begun with other metrics.",
            hint="Give another --out.",
        )
    asked = {item.id: item for item in now.asked}
    for item in before.asked:
        if item.id not in asked:
            raise ConfigurationError(
                f"{folder} asks {len(before.asked)} questions, and {item.id} is not among those of now.",
                hint="Ask for the same ones or for more, or give another --out.",
            )
        if changes := asked[item.id].changes(item):
            raise ConfigurationError(
                f"{folder} asks another question {item.id}: {'; '.join(changes)}.",
                hint="Give its text back, add questions at the end only, or ask all with another --out.",
            )


def now() -> str:
    """ISO 8601, with time zone."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _kept(options: RunOptions) -> dict[str, Any]:
    """The options that count for answers, as JSON gives them back; files by name and content."""
    declared = options.declared()
    kept = {name: value for name, value in options.as_dict().items() if declared[name].measured}
    if options.documents:
        kept["documents"] = f"{options.documents.name} {Documents.load(options.documents).hash[:_DIGITS]}"
    if options.kb:
        kept["kb"] = f"{options.kb.name} {KnowledgeBase.load(options.kb).hash[:_DIGITS]}"
    if options.explored:
        files = sorted(options.explored.glob(f"*/{TRIPLETS}"))
        kept["explored"] = f"{options.explored.name} {''.join(map(_file_digest, files))[:_DIGITS]}"
    if options.demonstrations:
        kept["demonstrations"] = f"{options.demonstrations.name} {_file_digest(options.demonstrations)}"
    return kept


def _file_digest(file: Path) -> str:
    with read_errors(file), file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()[:_DIGITS]


def _asked(question: EvalQuestion, scorer: Scorer) -> PlannedQuestion:
    return PlannedQuestion(
        id=question.id,
        database=question.database,
        dialect=question.dialect,
        difficulty=question.difficulty,
        external_knowledge=bool(question.knowledge),
        groups=dict(question.groups),
        parts=tuple(_parts(question, scorer)),
    )


def _parts(question: EvalQuestion, scorer: Scorer) -> Iterator[str]:
    """The parts of a question. A gold file counts by its name and content, not by its folder."""
    files = scorer.gold_files(question)
    places = {str(file) for file in files}
    yield f"text {_digest(question.question)}"
    yield f"gold SQL {_digest(question.gold_sql)}"
    if question.gold_tables:
        yield f"gold tables {_digest(question.gold_tables)}"
    for name, text in question.knowledge.items():
        yield f"knowledge {name} {_digest(text)}"
    for file in files:
        yield f"gold file {file.name} {_file_digest(file)}"
    for name, value in question.extra.items():
        if str(value) not in places:
            yield f"{name} {_digest(value)}"


def _digest(content: object) -> str:
    text = json.dumps(content, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]
