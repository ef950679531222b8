"""Silent errors: what is wrong with a query that runs, as far as its data shows it.

An engine reports no join that repeats rows, no tie that LIMIT cuts, no day that a bound cuts off. Each check
reads the query's tree for one such error, asks the data whether it is there, runs the query without it, and
speaks only where the result changes.
"""

from __future__ import annotations

from quorum.tools.silent_errors.checking import suspicions
from quorum.tools.silent_errors.doubts import Doubt, Suspicion

__all__ = ["Doubt", "Suspicion", "suspicions"]
