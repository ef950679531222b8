"""The reader: a question's tokens, what they name, and which of them have been understood."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator

from knowledge.catalog import Column, Table
from tools.offline.cues import NEGATIONS
from tools.offline.draft import Draft
from tools.offline.lexicon import Token, name_stems, word_set
from tools.offline.link import Linker, Mention, Option
from tools.offline.schema import is_date, is_numeric

Hit = tuple[Table, Column]
Test = Callable[[Column], bool]
_JOINING = word_set("of the for all each every different distinct and , in a an from")


class Choice:
    """Decides between readings: at temperature 0 always for the best, else as the seed wants."""

    def __init__(self, temperature: float = 0.0, seed: int = 0) -> None:
        self.chance, self.seed = min(max(temperature, 0.0), 1.0), seed

    def strays(self, where: str, share: float) -> bool:
        """True in about ``share`` of the seeds at temperature 1; the same seed always decides alike."""
        return random.Random(f"{self.seed}/{where}").random() < share * self.chance


class Reader:
    """Reads a question, or a part of it that speaks of ``main``, into a draft.

    The rules mark the tokens that they have understood as ``used``, so that none is read twice.
    """

    def __init__(
        self, linker: Linker, tokens: list[Token], choice: Choice, main: Table | None = None
    ) -> None:
        self.linker, self.tokens, self.choice = linker, tokens, choice
        self.schema = linker.schema
        self.words = [re.sub(r"\s", "_", token.text.lower()) for token in tokens]
        self.mentions = linker.mentions(tokens)
        self.values = linker.values(tokens)
        self.used: set[int] = set()
        votes = self._votes()
        self.named = {m.start: t for m in self.mentions if (t := _table_meant(m, votes)) is not None}
        first = next(iter(self.named.values()), None) or max(
            self.schema.tables, key=lambda table: votes.get(table.full_name, 0.0)
        )
        self.draft = Draft(self.schema, main or first, frozenset(token.stem for token in tokens))

    def _votes(self) -> dict[str, float]:
        """How much of the question each table could answer, by full name."""
        votes: dict[str, float] = {}
        for mention in (*self.mentions, *self.values):
            best = {option.table.full_name: option.score for option in reversed(mention.options)}
            for name, score in best.items():
                votes[name] = votes.get(name, 0.0) + score
        return votes

    # -- what mentions stand for -----------------------------------------------------------------

    def resolve(self, mention: Mention, wants: Test | None = None) -> Option | None:
        """The column that a mention stands for here, preferring tables that the question names."""
        if not mention.options:  # trusted as written: whoever checks the query will say what is wrong
            return Option(self.draft.main, Column(self.tokens[mention.start].text, "NUMERIC"), 1.0)
        near, named = self._neighbour(mention), [*self.named.values()]
        best, top = None, 0.0
        for rank, option in enumerate(mention.options):
            if option.column is None or not self.draft.reaches(option.table):
                continue
            score = option.score + 0.5 * (option.table is near) + 0.35 * (option.table in named)
            score += 0.15 * (option.table is self.draft.main) + 0.4 * bool(wants and wants(option.column))
            score -= 0.3 * self.choice.strays(f"mention {mention.start} {rank}", 0.35)
            if score > top + 1e-9:
                best, top = option, score
        return best

    def _neighbour(self, mention: Mention) -> Table | None:
        """The table named right before (``singer name``) or soon after (``name and age of the singer``)."""
        before = next((m for m in self.mentions if m.end == mention.start and m.start in self.named), None)
        if before:
            return self.named[before.start]
        inside = {place for m in self.mentions for place in range(m.start, m.end)}
        for place in range(mention.end, len(self.tokens)):
            if place in self.named:
                return self.named[place]
            if self.words[place] not in _JOINING and place not in inside:
                break
        return None

    def table(self, mention: Mention | None) -> Table | None:
        """The table that a mention names, if the query can reach it."""
        table = self.named.get(mention.start) if mention else None
        return table if table is not None and self.draft.reaches(table) else None

    def column(self, mention: Mention | None, wants: Test) -> Hit | None:
        """The column that a mention names, if it is one that ``wants`` accepts."""
        option = self.resolve(mention, wants) if mention and mention.start not in self.named else None
        return (option.table, option.column) if option and option.column and wants(option.column) else None

    def tables(self) -> list[Table]:
        """The main table, then all that the question names or the query already needs."""
        named = [table for table in self.named.values() if self.draft.reaches(table)]
        found = {table.full_name: table for table in (self.draft.main, *named, *self.draft.tables)}
        return [*found.values()]

    def any_column(self, wants: Test) -> Hit | None:
        """The first column that ``wants`` accepts among the tables in play."""
        return next(((t, c) for t in self.tables() for c in t.columns if wants(c)), None)

    def implied(self, words: Iterable[str]) -> Hit | None:
        """The column that an adjective implies, such as ``age`` for ``older``."""

        def called(word: str) -> Test:
            name = name_stems(word)[0]
            return lambda c: name in name_stems(c.name) and (is_numeric(c) or is_date(c))

        return next((hit for word in words if (hit := self.any_column(called(word)))), None)

    # -- looking around --------------------------------------------------------------------------

    def find(self, pattern: str) -> Iterator[tuple[int, int, re.Match[str]]]:
        """Places of whole, unused words that ``pattern`` matches in the lower-case question."""
        text = " ".join(self.words)
        for match in re.finditer(rf"(?<!\S)(?:{pattern})(?!\S)", text):
            start = text.count(" ", 0, match.start())
            end = start + match.group().count(" ") + 1
            if not self.used & {*range(start, end)}:
                yield start, end, match

    def use(self, start: int, end: int) -> None:
        self.used |= {*range(start, end)}

    def free(self, mention: Mention) -> bool:
        return not self.used & {*range(mention.start, mention.end)}

    def at(self, place: int) -> Mention | None:
        return next((m for m in self.mentions if m.start <= place < m.end), None)

    def after(self, place: int, reach: int) -> Mention | None:
        """The first free mention that starts at ``place`` or up to ``reach`` tokens later."""
        return next((m for m in self.mentions if place <= m.start <= place + reach and self.free(m)), None)

    def before(self, place: int, reach: int) -> Mention | None:
        """The last free mention that ends at ``place`` or up to ``reach`` tokens earlier."""
        found = [m for m in self.mentions if place - reach <= m.end <= place and self.free(m)]
        return found[-1] if found else None

    def preceding(self, place: int, reach: int) -> list[str]:
        """The words right before ``place``, at most ``reach`` of them."""
        return self.words[max(0, place - reach) : place]

    def negated(self, place: int, reach: int) -> bool:
        """Whether one of the ``reach`` words before ``place`` denies what follows."""
        denied = NEGATIONS & {*self.preceding(place, reach)}
        return bool(denied) or self.preceding(place, 2) == ["other", "than"]


def _table_meant(mention: Mention, votes: dict[str, float]) -> Table | None:
    """The table that a mention names better than any column; of equals, the one that answers most."""
    least = max(0.45, mention.options[0].score - 0.01) if mention.options else 1.0
    tables = [option for option in mention.options if option.column is None and option.score >= least]
    return max(tables, key=lambda o: o.score + 0.1 * votes[o.table.full_name]).table if tables else None
