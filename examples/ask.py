"""Ask a database from a script: one question, then several at once.

python examples/ask.py                                   the sample database, offline model
python examples/ask.py sqlite:///shop.db openai:gpt-4.1  your database, your model
"""

import sys

from quorum import Quorum

database = sys.argv[1] if len(sys.argv) > 1 else "sample"
model = sys.argv[2] if len(sys.argv) > 2 else "offline"  # a rule-based demonstration

with Quorum(db=database, models=[model]) as quorum:
    print(quorum.ask("How many customers are there?", votes=3))
    for answer in quorum.ask_many(["How many orders are there?", "How many products are there?", ""]):
        print(answer.status, answer.rows, answer.error, answer.trace)
