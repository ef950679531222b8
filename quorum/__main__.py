"""``python -m quorum`` is ``quorum``."""

from quorum.cli import main

main()
