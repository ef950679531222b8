"""The rules: patterns of a question's gist, and what each adds to the query."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from sqlglot import exp, parse_one

from quorum.tools.offline.draft import Draft
from quorum.tools.offline.lexicon import (
    ABOUT,
    AGGREGATE,
    AGGREGATES,
    ASCENDING,
    ASKING,
    COLUMN,
    COMPARISONS,
    CUTS,
    IS,
    MEASURE,
    MOST,
    NUMBER,
    POINT,
    TABLE,
    THE,
    WHEN,
    stems,
)
from quorum.tools.offline.reading import Reading, measures
from quorum.tools.offline.schema import Place, Schema, kind
from quorum.tools.writing import write

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
    "(?:(?P<column>[DY][0-9]+) )?(?P<lead>in|on|during|from|since|between|after|before|for)"
    f"(?: the| years?| [DY][0-9]+)* (?P<low>{POINT})(?: (?:to|and|until|or) (?P<high>{POINT}))?"
)
def read_period(reading: Reading, match: re.Match[str]) -> None:
    """``in 2014``, ``from February to May 2024``, ``before 1990``: on a column of dates or years."""
    low, high = match["low"], following(match["high"] or match["low"])
    low, high = {"before": ("", low), "after": (high, ""), "since": (low, "")}.get(match["lead"], (low, high))
    dated = reading.dated("DY" if len(low or high) == 4 else "D")
    if place := reading.places.get(match["column"], dated):
        for sign, point in ((">=", low), ("<", high)):
            text = point[:4] if kind(place[1]) == "Y" else f"'{point}{'-01-01'[len(point) - 4 :]}'"
            reading.where += [f"{reading.ref(place)} {sign} {text}"] if point else []


def following(point: str) -> str:
    """The year, month or day right after the one that ``point`` names."""
    if day := point[8:]:
        return (date(int(point[:4]), int(point[5:7]), 1) + timedelta(days=int(day))).isoformat()
    year, month = int(point[:4]), int(point[5:] or 12)
    return f"{year + month // 12}-{month % 12 + 1:02d}"[: len(point)]


@rule(
    r"(?:(?:order|sort|rank)\w*(?: \S+){0,4}?|"
    rf"(?P<top>top|bottom)(?: (?P<n>[0-9]+))?(?P<what>(?: \S+){{0,3}}?))"
    f" by {THE}(?:(?P<word>{AGGREGATE}) )?{THE}"
    f"(?P<code>{COLUMN}|{TABLE})(?P<down>.* (?:desc|from (?:the )?(?:most|high|larg|old|new)).*)?"
)
def read_order(reading: Reading, match: re.Match[str]) -> None:
    """``ordered by age descending``, ``top 5 customers by number of orders``, ``top 3 cities by revenue``."""
    table, what = reading.places[match["code"]][0], match["what"] or ""
    joined = match["top"] and (table is not reading.main or re.search(COLUMN, what))
    text = reading.amount(match["code"], AGGREGATES.get(match["word"], "SUM" * bool(joined)))
    reading.order.append(text + " DESC" * bool(match["down"] or match["top"] == "top"))
    if match["top"]:
        start, end = match.span("what")
        reading.gist = f"{reading.gist[:start]}{what} {reading.gist[end + 1 :]}"
        reading.limit = match["n"] or "1"
        reading.show(end, text)


@rule(
    "(?:(?:(?P<top>top|bottom)|which|what|the|show|list|find|me) |^)(?P<n>[0-9]+)"
    f"(?= (?:[a-z]+ )?(?:{TABLE}|{COLUMN}))"
)
def read_limit(reading: Reading, match: re.Match[str]) -> None:
    """``top 5 customers``, ``which 3 products``: how many; by what a measure says, if nothing else does."""
    reading.limit, main, key = match["n"], reading.main, reading.schema.key(reading.main)
    children = [join[2] for join in reading.schema.joins if join[0] is main and join[1] is key]
    if match["top"] and (own := measures(main)):
        reading.order.append(reading.ref((main, own[0])) + " DESC" * (match["top"] == "top"))
    elif match["top"] and children:
        reading.used.append(max(children, key=lambda table: len(measures(table))))
        reading.order.append("COUNT(*)" + " DESC" * (match["top"] == "top"))


@rule(
    f"(?:(?P<n>[0-9]+) )?(?:(?P<before>{MEASURE}) (?:the )?)?(?<!at )(?P<cue>{MOST})"
    f"(?: {THE}(?:common|popular|(?:(?P<word>{AGGREGATE}) )?{THE}(?P<code>{TABLE}|{MEASURE})))?"
)
def read_extreme(reading: Reading, match: re.Match[str]) -> None:
    """``the oldest singer``, ``the most orders``, ``most common type``, ``3 most expensive products``."""
    code, base = match["code"] or match["before"], re.sub("^(?:most|least) |est$", "", match["cue"])
    place = reading.column(lambda column: ABOUT.get(base) in stems(column.name))
    ascending = match["cue"].startswith(ASCENDING)
    if not place and base in WHEN and (place := reading.dated("DY")):
        ascending = WHEN[base]
        reading.where += [f"{reading.ref(place)} IS NOT NULL"] * ascending
    function = AGGREGATES.get(match["word"], "SUM" * bool(match["before"]))
    text = reading.ref(place) if place else reading.amount(code, function)
    reading.order.insert(0, text if ascending else f"{text} DESC")
    reading.limit = match["n"] or reading.limit or "1"
    if reading.limit == "1" and place and not reading.where and reading.strays("ties", 0.3):
        source, best = reading.source(place[0]), "MIN" if ascending else "MAX"
        reading.where.append(f"{text} = (SELECT {best}({text}) FROM {source})")
        reading.order, reading.limit = [], ""
    if not (place or "(" in text or re.search("[CDMTY][0-9]", reading.gist[: match.start()])):
        reading.items[match.start()] = (text, reading.places[code][0])


@rule(f"(?P<word>{AGGREGATE}) {THE}(?P<code>{MEASURE})")
@rule(f"(?P<word>{AGGREGATE})(?= (?:(?:,|and|the|{AGGREGATE}) )+{THE}(?P<code>{MEASURE}))")
def read_aggregate(reading: Reading, match: re.Match[str]) -> None:
    """``average and maximum age``, ``total amount``."""
    function, place = AGGREGATES[match["word"]], reading.places[match["code"]]
    name = reading.quote(f"{function}_{place[1].name}".lower())
    reading.items[match.start()] = (f"{function}({reading.ref(place)}) AS {name}", None)


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
    places = reading.columns(hit for mention in mentions for hit in mention.hits)
    places.sort(key=lambda place: (place != beside, place[0] not in reading.named.values()))
    place = (beside if match["before"] or not places else places[0]) or reading.schema.label(reading.main)
    left = ("LOWER({})" if kind(place[1]) == "C" else "CAST({} AS VARCHAR)").format(reading.ref(place))
    if exact := kind(place[1]) == "C" and reading.strays("exact", 0.25):
        left = reading.ref(place)
    texts = [mention.text if exact else mention.text.lower() for mention in mentions]
    texts = [write(exp.Literal.string(text), reading.schema.dialect) for text in texts]
    equal = f"IN ({', '.join(texts)})" if texts[1:] else f"= {texts[0]}"
    reading.where.append(f"{'NOT ' * ('not' in match['is'])}{left} {equal}")


@rule(f"(?:no|not|never|without)(?: [a-z]+){{0,3}}? (?P<code>{TABLE}|D[0-9]+)(?! (?:{COLUMN}|V[0-9]))")
def read_absence(reading: Reading, match: re.Match[str]) -> None:
    """``customers without orders``, ``have never placed an order``, ``were not shipped``."""
    table, column = reading.places[match["code"]]
    if path := reading.reached[table.full_name]:
        main, key, other, link = path[0]
        inner = Draft(reading.schema, other)
        inner.items[0] = (inner.ref((other, link)), other)
        absent = [(other, link)] + [(table, column)] * (match["code"][0] == "D")
        inner.where = [f"{inner.ref(place)} IS NOT NULL" for place in absent]
        inner.used.append(table)
        reading.where.append(f"{reading.ref((main, key))} NOT IN ({' '.join(inner.sql().split())})")
    elif match["code"][0] == "D":
        reading.where.append(f"{reading.ref((table, column))} IS NULL")


@rule(
    "(?:(?:for|in|of) )?(?:each|every|per|by) (?:the )?(?P<unit>month|year|Y[0-9]+)|(?P<adverb>month|year)ly"
)
def read_calendar(reading: Reading, match: re.Match[str]) -> None:
    """``orders per month``: rows go by a part of their date, unless a table that is meant has the years."""
    unit, place = match["adverb"] or match["unit"], reading.places.get(match["unit"])
    when = reading.dated() if not place or place[0] not in reading.named.values() else None
    if when:
        part = calendar(reading.ref(when), "month" if unit == "month" else "year", reading.schema.dialect)
        if not (reading.items or re.search("how many|[CMY][0-9]", reading.gist)):
            reading.items[0] = ("COUNT(*)", None)
        reading.items[match.start()] = (part, reading.main)
    elif place:
        reading.items[match.start()] = (reading.ref(place), place[0])


def calendar(text: str, unit: str, dialect: str) -> str:
    """The month or year in which a date lies, as the dialect cuts it."""
    moment = parse_one(text, read=dialect)
    written = exp.Literal.string("%Y-%m" if unit == "month" else "%Y")
    if dialect != "sqlite":
        moment = exp.cast(moment, "date")
    return write(exp.TimeToStr(this=moment, format=written), dialect)


@rule(f"(?:(?:for|in|of) )?(?:each|every|per|(?<!e[dn] )by) (?:the )?(?:{TABLE} )?(?P<code>{COLUMN}|{TABLE})")
def read_group(reading: Reading, match: re.Match[str]) -> None:
    """``for each country``, ``average age by segment``."""
    place = reading.places[match["code"]]
    named = match["code"][0] == "T"
    reading.items[match.start()] = reading.label(place[0]) if named else (reading.ref(place), place[0])


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
    asked, shown = True, dict[int, Place]()
    for match in re.finditer(r"\S+", reading.gist):
        asked = match[0] in ASKING if match[0] in ASKING + CUTS else asked
        if asked and re.fullmatch(COLUMN, match[0]):
            shown[match.start()] = reading.places[match[0]]
    grouped = reading.items and all(table for _, table in reading.items.values())
    for n, (table, column) in shown.items():
        text, summed = (
            reading.ref((table, column)),
            grouped and column in measures(table),
        )  # revenue by channel
        reading.items[n] = (f"SUM({text})", None) if summed else (text, table)
    reading.items |= {} if reading.items else {0: reading.label(reading.main)}
    reading.distinct = bool(re.search("different|distinct", reading.gist)) or reading.strays("distinct", 0.3)
