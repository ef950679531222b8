"""The `offline` model: a rule-based demonstration that needs no key and no network.

``schema`` reads the tables in a prompt, ``grammar`` makes a query of a plain question, ``roles`` fill in each
agent's reply form, and ``model`` is LangChain's interface. What the rules cannot read they pass over: no
answer claims to be the right one, and a question of which they can read hardly a word gets none.
"""
