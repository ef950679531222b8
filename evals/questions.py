"""What a benchmark asks: questions with their databases and what is known of their answers, and their ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from quorum.knowledge.errors import ConfigurationError, read_errors

if TYPE_CHECKING:
    from quorum.evals.scorers.base import Scorer

GoldParts: TypeAlias = Literal["tables", "columns"]
"""Of a question's gold, what the schema that its run shows may be restricted to: for ablations alone."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")  # what may name a run's folder (graph.trace)
ID_HINT = (
    "It names files: use at most 81 letters, digits, '-', '_', '.', the first of them a letter or digit."
)


@dataclass(frozen=True)
class EvalQuestion:
    """One question of a benchmark.

    Attributes:
        id: Names the question in results and files, unique in its suite (``is_id``).
        database: As the benchmark names it.
        url: Of the database that answers it; a ``schema://`` URL where only the schema is available.
        dialect: sqlglot's name.
        gold_sql: Accepted queries as the benchmark has them; may be empty.
        difficulty: As the benchmark grades it, or by the length of the gold SQL; empty if unknown.
        gold_tables: Tables that the benchmark says the question needs; empty if it says nothing.
        knowledge: External knowledge that belongs to this question: documents by name.
        extra: What else the suite's scorer needs, as plain values.
        groups: Further groups whose scores are reported apart, by what they differ in.
        shown_as: The name that the agents see for the database, where its own would tell of the gold.
    """

    id: str
    question: str
    database: str
    url: str
    dialect: str
    gold_sql: tuple[str, ...] = ()
    difficulty: str = ""
    gold_tables: tuple[str, ...] = ()
    knowledge: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    shown_as: str = ""

    @property
    def live(self) -> bool:
        """True if queries can run; False where only the schema is available."""
        return not self.url.startswith("schema://")


@dataclass(frozen=True)
class Suite:
    """A benchmark as it lies on disk.

    Attributes:
        questions: In the benchmark's order.
        scorer: By whose rules answers are judged.
        missing: What the folder lacks and where to get it, for people; empty if it is whole.
    """

    name: str
    folder: Path
    questions: tuple[EvalQuestion, ...]
    scorer: Scorer
    missing: tuple[str, ...] = ()

    def chosen(
        self,
        *,
        ids: Iterable[str] | None = None,
        limit: int | None = None,
        shard: tuple[int, int] = (1, 1),
        sample: Mapping[str, int] | None = None,
    ) -> tuple[EvalQuestion, ...]:
        """The questions that are asked: of ``ids`` a sample, of it the first ``limit``, of them one shard.

        Args:
            shard: (2, 8) is the second of eight; every eighth question, so that shards are alike.
            sample: How many questions of which groups (or difficulties; empty for all questions). They are
                drawn by a hash of their ids: always the same, and a larger sample holds the smaller one.

        Raises:
            ConfigurationError: An id or a group is not in the suite, or nothing is left.
        """
        asked = list(self.questions)
        if ids is not None:
            wanted = dict.fromkeys(ids)
            check_known(wanted, [question.id for question in asked], self.name)
            asked = [question for question in asked if question.id in wanted]
        if sample:
            drawn = {id for group, count in sample.items() for id in self._drawn(asked, group, count)}
            asked = [question for question in asked if question.id in drawn]
        number, count = shard
        asked = asked[:limit][number - 1 :: count]
        if not asked:
            raise ConfigurationError("No question is left to ask.", hint="Check --ids, --limit and --shard.")
        return tuple(asked)

    def _drawn(self, asked: Sequence[EvalQuestion], group: str, count: int) -> list[str]:
        """Ids of a group's sample."""
        labels = {question.id: {"", question.difficulty, *question.groups.values()} for question in asked}
        members = [id for id, own in labels.items() if group in own]
        if not members:
            known = sorted(set().union(*labels.values()) - {""})
            raise ConfigurationError(
                f"{self.name} has no question in a group {group!r}.",
                hint=f"Its groups are {', '.join(known)}." if known else "It has no groups: name a number.",
            )
        return sorted(members, key=lambda id: hashlib.sha256(id.encode()).hexdigest())[:count]


Loader = Callable[[Path], Suite]


def check_known(ids: Iterable[str], known: Sequence[str], what: str) -> None:
    """Check that ``what``, as people call it, has questions of these ids.

    Raises:
        ConfigurationError: An id is not known.
    """
    if strangers := [id for id in ids if id not in set(known)]:
        more = f" (and {len(strangers) - 1} more that were named)" if len(strangers) > 1 else ""
        raise ConfigurationError(
            f"{what} has no question {strangers[0]!r}{more}.",
            hint=f"Its ids are like {', '.join(known[:3])}.",
        )


def is_id(text: str) -> bool:
    """Return True if a text may be a question's id."""
    return _ID.fullmatch(text) is not None


def read_ids(path: Path) -> tuple[str, ...]:
    """Read the ids in a file, each once, in its order; blank lines and comments (``#``) are skipped.

    Whether a suite knows them is ``Suite.chosen``'s to say.

    Raises:
        ConfigurationError: The file cannot be read, is no UTF-8 text, or names nothing.
    """
    with read_errors(path, hint="Give a text file with one id per line."):
        text = path.read_text(encoding="utf-8-sig")
    lines = (line.strip() for line in text.splitlines())
    ids = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise ConfigurationError(f"{path} names no question.", hint="Write one id per line.")
    return ids
