"""mcpsync with its ``speed`` extra: the same adapter, in an environment that has orjson."""

IMPORT = "import mcpsync"

from .mcpsync import connect_http, connect_stdio

__all__ = ["connect_http", "connect_stdio"]
