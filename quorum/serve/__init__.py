"""Questions from other programs: the service beneath the HTTP API, its page and MCP."""
