"""What a worker needs for its first question: workers are forked from a process that has imported it."""

from __future__ import annotations

import gc

from quorum.tools.garbage import no_collections

with no_collections():  # looking for garbage takes an eighth of the time, and there is none
    import distributed.nanny
    import pyarrow.parquet

    import quorum.evals.running.cluster
    import quorum.evals.scorers.own

    gc.freeze()  # else this process looks through it all once, and each worker too, which copies it

__all__ = ["distributed", "pyarrow", "quorum"]
