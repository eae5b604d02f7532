"""Signing in: OAuth 2.1 as the MCP specification has it (``basic/authorization``)."""
