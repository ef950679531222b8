"""Roles, in modules by their work. Each is a reply model, a ``Role``, and a task in
``agents/prompts/<name>.md``.

``quorum.agents.base.ask`` asks any of them. A role that needs several calls has a function of its own; such a
function raises what ``ask`` raises.
"""
