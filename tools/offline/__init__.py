"""The `offline` model: a rule-based demonstration that needs no key and no network.

``schema`` reads the tables in a prompt, ``grammar`` makes a query of a plain question, and ``model`` fills in
each agent's reply form behind LangChain's interface. What the rules cannot read they skip: no answer claims
to be right, and a question of which they can read hardly a word gets none.
"""
