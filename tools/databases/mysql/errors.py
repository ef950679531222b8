"""What MySQL and MariaDB say of a query that failed, as a ``QueryError``."""

from __future__ import annotations

import re

from quorum.tools.databases.base import GROUPING, by_code
from quorum.tools.databases.server import Refusal, sentence
from quorum.tools.query import ErrorKind, QueryError

KINDS = {
    ErrorKind.SYNTAX: "1064 1065 1149 1235 1295 1221 1222 1241 1242 1248",
    ErrorKind.TABLE_NOT_FOUND: "1049 1051 1109 1146 1356 1932",
    ErrorKind.COLUMN_NOT_FOUND: "1054 1247",
    ErrorKind.AMBIGUOUS_COLUMN: "1052 1060 1066",
    ErrorKind.GROUPING: "1055 1056 1111 1140 4015 4074",
    ErrorKind.FUNCTION: "1128 1305 1582 1583 1584 1630 3593 4016",
    ErrorKind.TYPE_MISMATCH: "1264 1267 1270 1271 1292 1366 1411 1690 3140 3141 3143 4078",
    ErrorKind.PERMISSION: "1044 1045 1142 1143 1227 1290 1370 1410 1792 3118",
    ErrorKind.TIMEOUT: "1317 1969 3024",
    ErrorKind.RESOURCES: "1037 1038 1041 1114 1135 1153 1301 3636",
    ErrorKind.UNAVAILABLE: "1040 1203 1205 1213 1226 1429 1430",
}
BY_NUMBER = by_code(KINDS)
_LINE = re.compile(r"at line (\d+)")


def query_error(refusal: Refusal) -> QueryError:
    """The kind and a sentence; the server tells a line only for syntax, and no column."""
    kind = BY_NUMBER.get(refusal.state)
    if kind is None:
        kind = ErrorKind.GROUPING if re.search(GROUPING, refusal.message) else ErrorKind.OTHER
    found = _LINE.search(refusal.message)
    return QueryError(kind, sentence(refusal.message), line=int(found[1]) if found else None)
