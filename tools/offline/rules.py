"""The rules: patterns of a question's gist, and what each adds to the query."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

from sqlglot import exp

from knowledge.catalog import Column
from tools.offline.draft import Draft
from tools.offline.lexicon import AGGREGATES, split_words, stems
from tools.offline.schema import Hit, Mention, Place, Schema, kind

AGGREGATE, NUMBER = f"(?:{'|'.join(AGGREGATES)})", "[0-9]+(?:[.][0-9]+)?"
TABLE, COLUMN, MEASURE = "T[0-9]+", "[CDMY][0-9]+", "[DMY][0-9]+"
THE = "(?:(?:the|a|an|all|of|any|each|different|distinct|their|its|for|in|amount|how many) )*"
IS = "(?:(?:is|are|was|were|of|named|called|equal|to|the|as|by|in|from|for|that|with|not) )*"
POINT = "(?:1[89]|20)[0-9]{2}(?:-(?:0[1-9]|1[0-2]))?"  # a year or a month
COMPARISONS = {
    "at least": ">=",
    "at most|(?:not|no) more than": "<=",
    "(?:more|greater|larger|higher|older|longer|heavier|taller) than|above|over|after": ">",
    "(?:less|fewer|smaller|lower|younger|shorter|lighter|cheaper) than|below|under|before": "<",
}
MOST = "(?:most|least) expensive|most|least|best|(?:high|larg|bigg|old|tall|low|small|few|young|cheap)est"
ASCENDING = ("least", "low", "small", "few", "young", "cheap")
ABOUT = {"old": "ag", "young": "ag", "tall": "height", "expensive": "pric", "cheap": "pric"}  # stems
ASKING = re.findall(r"\S+", "what show list give find return tell how who which display ; .")
CUTS = re.findall(r"\S+", "whose that where with having have has had when while from in by without if not")


class Reading(Draft):
    """A query that is drafted as a question is read.

    In the ``gist`` whatever words name is a letter and a number: ``T`` a table, ``V`` a value, the letter of
    ``kind`` a column: "average age of singers from 'Rome'" becomes ``average M1 of T3 from V5``.
    """

    def __init__(self, schema: Schema, question: str, temperature: float = 0.0, seed: int = 0) -> None:
        self.temperature, self.seed = min(temperature, 1.0), seed
        self.mentions = list(schema.mentions(split_words(question)))
        tables = {n: m.hits[0].table for n, m in enumerate(self.mentions) if m.hits and not m.hits[0].column}
        voted = max(schema.tables, key=lambda t: sum(h.table is t for m in self.mentions for h in m.hits))
        super().__init__(schema, next(iter(tables.values()), voted))
        self.reached = schema.paths(self.main)
        self.named = {n: table for n, table in tables.items() if table.full_name in self.reached}
        self.places = {f"T{n}": schema.label(table) for n, table in self.named.items()}  # by code
        self.gist = " ".join(self._code(n, mention) for n, mention in enumerate(self.mentions))

    def strays(self, where: str, share: float) -> bool:
        """True in about ``share`` of the seeds at temperature 1, never at 0: how readings differ."""
        return random.Random(f"{self.seed}/{where}").random() < share * self.temperature

    def _code(self, n: int, mention: Mention) -> str:
        """The code of a mention; a column is rather one of the table named nearest, or at all."""
        if mention.letter != "N" or n in self.named:
            return f"T{n}" if n in self.named else f"V{n}" if mention.letter else mention.text.lower()
        near = self.named.get(min(self.named, key=lambda other: abs(other - n), default=n), self.main)

        def doubt(hit: Hit) -> float:
            close = 0.5 * (hit.table is near) + 0.35 * (hit.table in (self.main, *self.named.values()))
            return 0.3 * self.strays(f"{n} {hit.table.name}", 0.35) - hit.score - close

        trusted = Hit(1.0, self.main, Column(mention.text, "NUMERIC"))  # snake_case, taken as written
        columns = self.columns(sorted(mention.hits or [trusted], key=doubt))
        self.places |= {f"{kind(place[1])}{n}": place for place in columns[:1]}
        return f"{kind(columns[0][1])}{n}" if columns else mention.text.lower()

    def columns(self, hits: Iterable[Hit]) -> list[Place]:
        """The columns among the hits that the query can reach."""
        return [(hit.table, hit.column) for hit in hits if hit.column and hit.table.full_name in self.reached]

    def column(self, wanted: Callable[[Column], bool]) -> Place | None:
        """The first column that is ``wanted`` in the main table, those named and those needed so far."""
        tables = [self.main, *self.named.values(), *self.used]
        return next(((t, c) for t in tables for c in t.columns if wanted(c)), None)

    def amount(self, code: str | None) -> str:
        """What rows are compared or put in order by: a column, or how many of a table there are."""
        text = self.ref(self.places[code] if code else self.schema.label(self.main))
        return text if code and code[0] != "T" else "COUNT(*)"


Rule = Callable[[Reading, re.Match[str]], None]
RULES: list[tuple[str, Rule]] = []


def rule(pattern: str) -> Callable[[Rule], Rule]:
    """Register what to do where the pattern matches; rules apply in the order of this file."""

    def register(apply: Rule) -> Rule:
        RULES.append((rf"(?<!\S)(?:{pattern})(?!\S)", apply))
        return apply

    return register


def read(schema: Schema, question: str, temperature: float = 0.0, seed: int = 0) -> Reading:
    """The query that the rules read out of ``question``; always a complete one.

    What a rule matches is blanked out of the gist, so that no other rule reads it again.
    """
    reading = Reading(schema, question, temperature, seed)
    for pattern, apply in RULES:
        for match in re.finditer(pattern, reading.gist):
            reading.gist = reading.gist[: match.start()] + "_" * len(match[0]) + reading.gist[match.end() :]
            apply(reading, match)
    read_columns(reading)
    return reading


@rule(
    "(?:(?P<column>[DY][0-9]+) )?(?P<lead>in|during|from|since|between|after|before|for)"
    f"(?: the| years?| [DY][0-9]+)* (?P<low>{POINT})(?: (?:to|and|until|or) (?P<high>{POINT}))?"
)
def read_period(reading: Reading, match: re.Match[str]) -> None:
    """``in 2014``, ``from February to May 2024``, ``before 1990``: on a column of dates or years."""
    low, high = match["low"], following(match["high"] or match["low"])
    low, high = {"before": ("", low), "after": (high, ""), "since": (low, "")}.get(match["lead"], (low, high))
    dated = reading.column(lambda column: kind(column) in ("DY" if len(low or high) == 4 else "D"))
    if place := reading.places.get(match["column"], dated):
        for sign, point in ((">=", low), ("<", high)):
            text = point[:4] if kind(place[1]) == "Y" else f"'{point}{'-01-01'[len(point) - 4 :]}'"
            reading.where += [f"{reading.ref(place)} {sign} {text}"] if point else []


def following(point: str) -> str:
    """The year or month right after the one that ``point`` names."""
    year, month = int(point[:4]), int(point[5:] or 12)
    return f"{year + month // 12}-{month % 12 + 1:02d}"[: len(point)]


@rule(
    rf"(?:(?:order|sort|rank)\w*(?: \S+){{0,4}}?|top (?P<top>[0-9]+)(?: \S+){{0,3}}) by {THE}"
    f"(?P<code>{COLUMN}|{TABLE})(?P<down>.* (?:desc|from (?:the )?(?:most|high|larg|old|new)).*)?"
)
def read_order(reading: Reading, match: re.Match[str]) -> None:
    """``ordered by age descending``, ``top 5 customers by number of orders``."""
    reading.order.append(reading.amount(match["code"]) + " DESC" * bool(match["down"] or match["top"]))
    reading.limit = match["top"] or ""


@rule(f"(?P<word>{AGGREGATE}) {THE}(?P<code>{MEASURE})")
@rule(f"(?P<word>{AGGREGATE})(?= (?:(?:,|and|the|{AGGREGATE}) )+{THE}(?P<code>{MEASURE}))")
def read_aggregate(reading: Reading, match: re.Match[str]) -> None:
    """``average and maximum age``, ``total amount``."""
    function, place = AGGREGATES[match["word"]], reading.places[match["code"]]
    name = reading.quote(f"{function}_{place[1].name}".lower())
    reading.items[match.start()] = (f"{function}({reading.ref(place)}) AS {name}", None)


@rule(f"(?:(?P<n>[0-9]+) )?(?<!at )(?P<cue>{MOST})(?: {THE}(?:common|popular|(?P<code>{TABLE}|{MEASURE})))?")
def read_extreme(reading: Reading, match: re.Match[str]) -> None:
    """``the oldest singer``, ``the most orders``, ``most common type``, ``3 most expensive products``."""
    code, base = match["code"], re.sub("^(?:most|least) |est$", "", match["cue"])
    place = reading.column(lambda column: ABOUT.get(base) in stems(column.name))
    text = reading.ref(place) if place else reading.amount(code)
    reading.order.insert(0, text if match["cue"].startswith(ASCENDING) else f"{text} DESC")
    reading.limit = match["n"] or "1"
    if not (place or text == "COUNT(*)" or re.search("[CDMTY][0-9]", reading.gist[: match.start()])):
        reading.items[match.start()] = (text, reading.places[code][0])


@rule(
    f"(?:(?P<left>{MEASURE}) )?{IS}(?:(?P<cue>{'|'.join(COMPARISONS)}) )?{THE}(?:(?P<inner>{MEASURE}) )?{THE}"
    f"(?P<number>{NUMBER})(?: (?P<right>{MEASURE}|{TABLE}))?"
)
def read_comparison(reading: Reading, match: re.Match[str]) -> None:
    """``age above 20``, ``at least 3 orders``, ``3 cylinders``."""
    if code := match["right"] or match["inner"] or match["left"]:
        sign = next((sign for cue, sign in COMPARISONS.items() if re.fullmatch(cue, match["cue"] or "")), "=")
        left = reading.amount(code)
        (reading.having if left == "COUNT(*)" else reading.where).append(f"{left} {sign} {match['number']}")


@rule(
    f"(?:(?P<before>C[0-9]+) )?(?P<is>{IS})(?P<values>V[0-9]+(?:(?: ,)?(?: and| or)? V[0-9]+)*)"
    f"(?: (?P<after>C[0-9]+|{TABLE}))?"
)
def read_values(reading: Reading, match: re.Match[str]) -> None:
    """Quoted words, known samples and proper names: equal to the column beside, or to one that holds them."""
    mentions = [reading.mentions[int(n)] for n in re.findall("V([0-9]+)", match["values"])]
    beside = reading.places.get(match["before"] or match["after"])
    held = reading.columns(hit for mention in mentions for hit in mention.hits)
    held.sort(key=lambda place: (place != beside, place[0] not in reading.named.values()))
    texts = [exp.Literal.string(mention.text.lower()).sql(reading.schema.dialect) for mention in mentions]
    equal = f"IN ({', '.join(texts)})" if texts[1:] else f"= {texts[0]}"
    place = (beside if match["before"] or not held else held[0]) or reading.schema.label(reading.main)
    left = ("LOWER({})" if kind(place[1]) == "C" else "CAST({} AS VARCHAR)").format(reading.ref(place))
    reading.where.append(f"{'NOT ' * ('not' in match['is'])}{left} {equal}")


@rule(f"(?:(?:for|in|of) )?(?:each|every|per|(?<!e[dn] )by) (?:the )?(?:{TABLE} )?(?P<code>{COLUMN}|{TABLE})")
def read_group(reading: Reading, match: re.Match[str]) -> None:
    """``for each country``, ``average age by segment``."""
    place = reading.places[match["code"]]
    reading.items[match.start()] = (reading.ref(place), place[0])


@rule(f"how many {THE}(?:(?P<column>{COLUMN})(?! {TABLE})|(?:{COLUMN} )?(?P<table>{TABLE}))?")
def read_count(reading: Reading, match: re.Match[str]) -> None:
    """``how many orders``, ``number of different countries``, ``count the customers``."""
    table, column = reading.places.get(match["table"] or match["column"], (reading.main, None))
    text, key = reading.amount(match["table"]), reading.schema.key(table) if match["table"] else column
    once = re.search("different|distinct", match[0]) or reading.strays("once", 0.5)
    if key and (once or kind(key) == "C"):
        text = f"COUNT(DISTINCT {reading.ref((table, key))})"
    reading.items[match.start()] = (f"{text} AS {reading.quote('count')}", None)


def read_columns(reading: Reading) -> None:
    """Columns named where the question says what to show; failing that, the subject's label."""
    asked, shown = True, {}
    for match in re.finditer(r"\S+", reading.gist):
        asked = match[0] in ASKING if match[0] in ASKING + CUTS else asked
        if asked and re.fullmatch(COLUMN, match[0]):
            shown[match.start()] = reading.places[match[0]]
    shown = shown if shown or reading.items else {0: reading.schema.label(reading.main)}
    reading.items |= {n: (reading.ref(place), place[0]) for n, place in shown.items()}
    reading.distinct = bool(re.search("different|distinct", reading.gist)) or reading.strays("distinct", 0.3)
