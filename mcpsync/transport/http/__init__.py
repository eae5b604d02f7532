"""Streamable HTTP, and the HTTP+SSE transport before it."""
