"""The recipe as an assistant of ``langgraph dev`` and Studio (``langgraph.json`` names it)."""

from quorum.studio import assistant

checked = assistant("checked")
