"""Ask a database from a script.

python examples/ask.py                                   the sample database, offline model
python examples/ask.py sqlite:///shop.db openai:gpt-4.1  your database, your model
"""

import sys

from quorum import ask_sync

database = sys.argv[1] if len(sys.argv) > 1 else "sample"
model = sys.argv[2] if len(sys.argv) > 2 else "offline"  # a rule-based demonstration

answer = ask_sync("How many customers are there?", db=database, models=[model], votes=3)

print(answer.status, f"(confidence {answer.confidence:.2f})")
print(answer.sql)
for row in answer.rows:
    print(row)
print("Every step:", answer.trace)
