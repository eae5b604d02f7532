"""MCP for code that blocks."""
