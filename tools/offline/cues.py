"""Cues: the small words of a question that ask for an operation rather than name something."""

from __future__ import annotations

from tools.offline.lexicon import word_set

NUMBER = r"(\d[\d.]*)"
_MORE = "(?:more|greater|larger|higher|bigger|older|longer|heavier|taller|faster|wider|better|later)"
_LESS = "(?:less|fewer|smaller|lower|younger|shorter|lighter|slower|cheaper|earlier)"

# what stands before a number, and the comparison it asks for; the longer forms first
COMPARISONS = {
    f"{_MORE} than or equal to|(?:not|no) {_LESS} than|at least|minimum of": ">=",
    f"{_LESS} than or equal to|(?:not|no|not have|not had) {_MORE} than|at most|up to|maximum of": "<=",
    f"{_MORE} than|above|over|exceed(?:s|ing)?|beyond": ">",
    f"{_LESS} than|below|under": "<",
    "after": ">",
    "before|prior to": "<",
    "exactly": "=",
}
# what stands before a piece of text, and the LIKE pattern it asks for
PATTERNS = {
    r"(?:contain\w*|includ\w*|ha\w+|with)(?: the)? (?:letter|word|substring|string|phrase) (\S+)": "%{}%",
    r"contain\w* (?:the )?(\S+)": "%{}%",
    r"(?:start|begin)\w* with (?:the letter )?(\S+)": "{}%",
    r"end\w* (?:with|in) (?:the letter )?(\S+)": "%{}",
}
OR_MORE = r"(?:or|and) (more|above|over|greater|higher|older|less|fewer|below|lower|younger)"
FEWER = frozenset({"less", "fewer", "below", "lower", "younger"})
EXTREMES = {
    **dict.fromkeys(("average", "mean"), "AVG"),
    **dict.fromkeys(("minimum", "lowest", "smallest", "min"), "MIN"),
    **dict.fromkeys(("maximum", "highest", "largest", "max"), "MAX"),
}

# adjectives and the columns they imply where none is named; the direction is that of their superlative
_IMPLIED = {
    "old": ("age", "DESC"),
    "young": ("age", "ASC"),
    "tall": ("height", "DESC"),
    "heavi": ("weight", "DESC"),
    "light": ("weight", "ASC"),
    "long": ("length duration", "DESC"),
    "short": ("height length duration", "ASC"),
    "fast": ("speed", "DESC"),
    "cheap": ("price cost amount", "ASC"),
    "expensive": ("price cost amount", "DESC"),
    "populous": ("population", "DESC"),
    **dict.fromkeys(("early", "earli", "first"), ("date year time", "ASC")),
    **dict.fromkeys(("last", "lat", "recent", "new"), ("date year time", "DESC")),
}
_PLAIN = {
    **dict.fromkeys(("high", "larg", "bigg", "great", "most", "maximum", "max", "top", "best"), ("", "DESC")),
    **dict.fromkeys(("low", "small", "least", "few", "minimum", "min", "worst"), ("", "ASC")),
}
_WHOLE = word_set("most least maximum minimum max min top recent best worst first last")

AGGREGATES = {
    "average": "AVG", "avg": "AVG", "mean": "AVG", "total": "SUM", "sum": "SUM",
    "maximum": "MAX", "max": "MAX", "minimum": "MIN", "min": "MIN",
}  # fmt: skip
COMPUTING = frozenset(AGGREGATES) | {"number", "many", "count"}
COUNT = r"(?:count )?(?:the )?(?:total )?numbers? of|how many|count(?: of)?|the number"
ORDER = (
    r"(?:order|ordered|sort|sorted|rank|ranked|arranged)(?: \S+){0,4}? by"
    r"|in \w+ (?:\w+ )?order(?: of| by)?|alphabetically"
)
DOWN = r"desc\w*(?: order)?|decreasing|from (?:the )?(?:most|high|larg|old|new|lat)\w*(?: to (?:the )?\w+)?"
EVERYTHING = r"(?:all|every) (?:the )?(?:information|info|details|columns|fields|data|attributes)|everything"
NEGATIONS = word_set("not no without never except excluding neither none")
DISTINCT = frozenset({"different", "distinct", "unique"})
COMMON = "common|popular|frequent|frequently used|commonly used|used|prevalent"
ASKING = word_set("what show list give find return tell how who display compute calculate describe")
CUTS = word_set(
    """whose who that where with having have has had when while for in from by without among if not ordered
    sorted order sort after before between"""
)
_MONTHS = "january february march april may june july august september october november december"
MONTHS = {
    name[:length]: number for number, name in enumerate(_MONTHS.split(), 1) for length in (3, len(name))
}


def implied(adjective: str) -> tuple[list[str], str] | None:
    """The columns, maybe none, and the direction that an adjective's superlative asks for."""
    found = _IMPLIED.get(adjective) or _PLAIN.get(adjective)
    return (found[0].split(), found[1]) if found else None


def superlative(word: str) -> tuple[list[str], str] | None:
    """``implied`` for a word that is a superlative, such as ``oldest`` or ``top``."""
    base = word if word in _WHOLE else word.removesuffix("est")
    if base == word and word not in _WHOLE:
        return None
    return implied(base) or implied(base[:-1])


def turned(direction: str, turn: bool) -> str:
    """The other direction, if ``turn``."""
    return {"ASC": "DESC", "DESC": "ASC"}[direction] if turn else direction
