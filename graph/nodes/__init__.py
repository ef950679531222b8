"""The thin layer between graph and agents: read state, call an agent, return a partial update."""
