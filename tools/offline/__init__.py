"""The `offline` model: a rule-based demonstration that needs no key and no network.

``lexicon`` cuts a question into words, ``schema`` tells which tables, columns and values they name, a
``reading`` chooses among these, the ``rules`` fill in the ``draft`` of its query, ``roles`` make each agent's
reply of it, and ``model`` is LangChain's interface. What the rules cannot read they pass over: no answer
claims to be the right one, and a question of which they can read hardly a word gets none.
"""
