"""One file per role: its declaration (``ROLE``), what it replies, and one async function.

Every role's function raises what ``quorum.agents.base.ask`` raises: MalformedReply, ModelUnavailable and
BudgetExceeded. To add a role, write ``agents/<role>.py`` and ``agents/prompts/<role>.md``.
"""
