"""Every error that mcpsync raises, as one tree.

::

    McpError
    ├── ConfigError                     a config file or an argument is wrong: file, path within it, nearest key
    ├── TransportError                  the channel to the server failed
    │   ├── ConnectFailed               no connection could be made
    │   │   └── ConnectTimeout          ... within the time for it (a TimeoutError too)
    │   ├── ConnectionLost              it was there and is gone: next attempt, maybe_executed
    │   │   ├── ProcessExited           ... since the server's process ended (a ConnectFailed too): exit code, stderr
    │   │   └── LimitOverrun            ... since a message was longer than the cap (a MessageTooLarge too)
    │   └── HttpError                   an HTTP answer that is no MCP answer: status, excerpt
    │       └── ConnectRejected         ... to the attempt to connect (a ConnectFailed too)
    ├── ProtocolError                   the peer broke the protocol
    │   ├── VersionMismatch             no revision in common: both lists
    │   ├── InvalidMessage              a message that is none
    │   ├── MessageTooLarge             longer than the configured cap
    │   └── PageLimit                   a listing that does not end: what was collected
    ├── RpcError                        the server answered with a JSON-RPC error: code, data
    │   ├── MethodNotFound              -32601
    │   ├── InvalidParams               -32602
    │   ├── ResourceNotFound            -32002 (2025-11-25 and earlier)
    │   └── UrlElicitationRequired      -32042 (2025-11-25)
    ├── RequestTimeout                  a deadline passed (a TimeoutError too)
    ├── RequestCancelled                cancelled by this side (a concurrent.futures.CancelledError too)
    ├── Overloaded                      no room: too much waits to be sent or to be handled
    ├── ToolError                       the tool ran and reports failure: the result
    │   └── SchemaMismatch              structured content that breaks the tool's own output schema: path, keyword
    ├── ArgumentsMismatch               arguments that break the tool's input schema (a ValueError too): path, keyword
    ├── AuthError                       NeedsLogin, IssuerMismatch, InsufficientScope, RegistrationRejected
    ├── PolicyDenied                    ApprovalRefused, ToolBlocked
    └── ClientClosed                    used after close()

Each carries ``server``, ``method`` and ``request_id`` where they are known, its text is one flat line that
names the cause, and each pickles with all it carries.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any, Dict, List, Optional, Tuple, Type

__all__ = [
    "ApprovalRefused",
    "ArgumentsMismatch",
    "AuthError",
    "ClientClosed",
    "ConfigError",
    "ConnectFailed",
    "ConnectRejected",
    "ConnectTimeout",
    "ConnectionLost",
    "HttpError",
    "InsufficientScope",
    "InvalidMessage",
    "InvalidParams",
    "IssuerMismatch",
    "LimitOverrun",
    "McpError",
    "MessageTooLarge",
    "MethodNotFound",
    "NeedsLogin",
    "Overloaded",
    "PageLimit",
    "PolicyDenied",
    "ProcessExited",
    "ProtocolError",
    "RegistrationRejected",
    "RequestCancelled",
    "RequestTimeout",
    "ResourceNotFound",
    "RpcError",
    "SchemaMismatch",
    "ToolBlocked",
    "ToolError",
    "TransportError",
    "UrlElicitationRequired",
    "VersionMismatch",
    "described",
    "flat",
]


def _rebuild(cls: Type[McpError], message: str, state: Dict[str, Any]) -> McpError:
    error = cls.__new__(cls, message)
    Exception.__init__(error, message)
    error.__dict__.update(state)
    return error


def described(error: BaseException) -> str:
    """An error of any origin as ``Type: text``, for the text of another one."""
    try:
        return "%s: %s" % (type(error).__name__, error)
    except Exception:  # it is the user's, and so is its __str__
        return type(error).__name__


def flat(text: str) -> str:
    """A text on one line that can be printed anywhere; for texts that come from servers."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else c.encode("unicode_escape").decode() for c in text)


class McpError(Exception):
    """The root of all errors of this library.

    :ivar message: the cause alone, without the names of server and method
    :ivar server: name of the server, if one is concerned
    :ivar method: the MCP method of the request, if one is concerned
    :ivar request_id: the JSON-RPC id of that request
    """

    def __init__(
        self,
        message: str,
        *,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.server = server
        self.method = method
        self.request_id = request_id

    def __str__(self) -> str:
        where = "" if self.server is None else "server %r: " % self.server
        if self.method is not None:
            where += self.method if self.request_id is None else "%s (request %s)" % (self.method, self.request_id)
            where += ": "
        return flat(where + self.message)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__)

    def located(
        self, server: Optional[str] = None, method: Optional[str] = None, request_id: Optional[int] = None
    ) -> McpError:
        """Fill in what is not known yet of server, method and request id; returns the same error."""
        if self.server is None:
            self.server = server
        if self.method is None:
            self.method = method
            self.request_id = request_id
        return self


class ConfigError(McpError):
    """Something that the user wrote is wrong.

    :ivar file: the file it stands in, None for an argument
    :ivar path: where in it, as ``servers.web.timeout``
    :ivar nearest: a known key that looks like the unknown one, if there is one
    :ivar line: the line of the file, from 1, None where there is none
    """

    def __init__(
        self,
        message: str,
        *,
        file: Optional[str] = None,
        path: Optional[str] = None,
        nearest: Optional[str] = None,
        server: Optional[str] = None,
        line: Optional[int] = None,
    ) -> None:
        super().__init__(message, server=server)
        self.file = file
        self.path = path
        self.nearest = nearest
        self.line = line

    def __str__(self) -> str:
        file = "%s:%d" % (self.file, self.line) if self.file and self.line else self.file
        where = ": ".join(part for part in (file, self.path) if part)
        text = "%s: %s" % (where, self.message) if where else self.message
        return flat(text + (" (did you mean %r?)" % self.nearest if self.nearest else ""))


class TransportError(McpError):
    """The channel to the server failed."""


class ConnectFailed(TransportError):
    """No connection could be made; the message names phase and cause.

    :ivar permanent: it will fail again until the user has mended something: the command does not exist, say
    """

    def __init__(
        self,
        message: str,
        *,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
        permanent: bool = False,
    ) -> None:
        super().__init__(message, server=server, method=method, request_id=request_id)
        self.permanent = permanent


class ConnectTimeout(ConnectFailed, TimeoutError):
    """No connection could be made within ``Timeouts.connect``."""


class ConnectionLost(TransportError):
    """The connection was there and is gone.

    :ivar next_attempt: seconds until the next attempt to connect again, None if none is planned
    :ivar maybe_executed: the request had been sent, so the server may have acted on it
    """

    def __init__(
        self,
        message: str,
        *,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
        next_attempt: Optional[float] = None,
        maybe_executed: bool = False,
    ) -> None:
        super().__init__(message, server=server, method=method, request_id=request_id)
        self.next_attempt = next_attempt
        self.maybe_executed = maybe_executed

    def __str__(self) -> str:
        text = super().__str__()
        if self.maybe_executed:
            text += "; the server may have executed it"
        if self.next_attempt is not None:
            text += "; next attempt to connect in %.1f s" % max(0.0, self.next_attempt)
        return text


class SessionLost(ConnectionLost):
    """The server no longer knows the session, so it executed nothing: a new session, and the request again."""


class ProcessExited(ConnectionLost, ConnectFailed):
    """The server's process ended.

    :ivar exit_code: as ``subprocess`` gives it: negative for a signal; None if it could not be learned
    :ivar stderr_tail: the last lines that it wrote to stderr, bounded
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: Optional[int] = None,
        stderr_tail: str = "",
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
        next_attempt: Optional[float] = None,
        maybe_executed: bool = False,
    ) -> None:
        super().__init__(
            message,
            server=server,
            method=method,
            request_id=request_id,
            next_attempt=next_attempt,
            maybe_executed=maybe_executed,
        )
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class HttpError(TransportError):
    """An HTTP answer that is no MCP answer.

    :ivar status: the HTTP status
    :ivar excerpt: the start of the body, bounded
    :ivar retry_after: seconds after which the server would be asked again, if it says so
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        excerpt: str = "",
        retry_after: Optional[float] = None,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
    ) -> None:
        super().__init__(message, server=server, method=method, request_id=request_id)
        self.status = status
        self.excerpt = excerpt
        self.retry_after = retry_after


class ConnectRejected(HttpError, ConnectFailed):
    """No connection could be made, since the server answered the attempt with an HTTP status and no MCP.

    :ivar permanent: the status (401 or 403) will be the same until the user has mended something
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        excerpt: str = "",
        retry_after: Optional[float] = None,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
    ) -> None:
        super().__init__(
            message,
            status=status,
            excerpt=excerpt,
            retry_after=retry_after,
            server=server,
            method=method,
            request_id=request_id,
        )
        self.permanent = status in (401, 403)


class ProtocolError(McpError):
    """The peer broke the protocol."""


class VersionMismatch(ProtocolError):
    """The two sides share no protocol revision.

    :ivar ours: the revisions that this side offered
    :ivar theirs: the revisions that the server named
    """

    def __init__(self, message: str, *, ours: List[str], theirs: List[str], server: Optional[str] = None) -> None:
        super().__init__(message, server=server)
        self.ours = ours
        self.theirs = theirs


class InvalidMessage(ProtocolError):
    """A message that is no valid JSON-RPC or MCP message."""


class MessageTooLarge(ProtocolError):
    """A message longer than the configured cap.

    :ivar limit: the cap in bytes
    """

    def __init__(self, message: str, *, limit: int, server: Optional[str] = None) -> None:
        super().__init__(message, server=server)
        self.limit = limit


class LimitOverrun(ConnectionLost, MessageTooLarge):
    """A message longer than the configured cap came on the one stream of a connection, which ended by that: nobody can
    tell whose answer it was, nor where the next message begins."""

    def __init__(
        self,
        message: str,
        *,
        limit: int,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
        next_attempt: Optional[float] = None,
        maybe_executed: bool = False,
    ) -> None:
        # not by way of the parents, each of which would hand its own arguments on to the other
        McpError.__init__(self, message, server=server, method=method, request_id=request_id)
        self.next_attempt = next_attempt
        self.maybe_executed = maybe_executed
        self.limit = limit


class PageLimit(ProtocolError):
    """A listing went past the page cap, or its cursor came back.

    :ivar partial: the items collected so far
    """

    def __init__(
        self, message: str, *, partial: List[Any], server: Optional[str] = None, method: Optional[str] = None
    ) -> None:
        super().__init__(message, server=server, method=method)
        self.partial = partial


class RpcError(McpError):
    """The server answered with a JSON-RPC error.

    :ivar code: the JSON-RPC error code
    :ivar data: the error's ``data``, if it has one
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        data: Any = None,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
    ) -> None:
        super().__init__(message, server=server, method=method, request_id=request_id)
        self.code = code
        self.data = data

    def __str__(self) -> str:
        return "%s (error %d)" % (super().__str__(), self.code)

    @staticmethod
    def of(code: int, message: str, data: Any = None) -> RpcError:
        """The error of the class that stands for this code."""
        return _BY_CODE.get(code, RpcError)(message, code=code, data=data)


class MethodNotFound(RpcError):
    """-32601: the server does not know the method."""


class InvalidParams(RpcError):
    """-32602: the server refuses the parameters."""


class ResourceNotFound(RpcError):
    """-32002: the resource does not exist (2025-11-25 and earlier; later -32602)."""


class UrlElicitationRequired(RpcError):
    """-32042: the user must visit a URL first (2025-11-25)."""


_BY_CODE: Dict[int, Type[RpcError]] = {
    -32601: MethodNotFound,
    -32602: InvalidParams,
    -32002: ResourceNotFound,
    -32042: UrlElicitationRequired,
}


class RequestTimeout(McpError, TimeoutError):
    """A deadline passed before the answer came.

    :ivar after: the seconds that were allowed
    """

    def __init__(
        self,
        message: str,
        *,
        after: Optional[float] = None,
        server: Optional[str] = None,
        method: Optional[str] = None,
        request_id: Optional[int] = None,
    ) -> None:
        super().__init__(message, server=server, method=method, request_id=request_id)
        self.after = after


class RequestCancelled(McpError, CancelledError):
    """The request was cancelled by this side."""


class Overloaded(McpError):
    """No room: more waits to be sent, or to be handled, than the configured bound."""


class ToolError(McpError):
    """The tool ran and its result has ``isError`` set.

    :ivar result: the whole :class:`~mcpsync.types.ToolResult`
    """

    def __init__(self, message: str, *, result: Any, server: Optional[str] = None, tool: Optional[str] = None) -> None:
        super().__init__(message, server=server)
        self.result = result
        self.tool = tool

    def __str__(self) -> str:
        where = "server %r: " % self.server if self.server else ""
        named = "tool %r: " if isinstance(self, SchemaMismatch) else "tool %r failed: "
        return flat(where + (named % self.tool if self.tool else "") + self.message)


class SchemaMismatch(ToolError):
    """Structured content that breaks the tool's own output schema, or one that cannot be used. The tool did run.

    :ivar path: JSON pointer to what is wrong in it; empty for the whole of it
    :ivar keyword: of the schema, that it breaks; empty where the schema cannot be used, or the content is missing
    """

    path = keyword = ""


class ArgumentsMismatch(McpError, ValueError):
    """Arguments that break the input schema of the tool ``tool``; else as :class:`SchemaMismatch`. Nothing was sent."""

    tool = path = keyword = ""


class AuthError(McpError):
    """Signing in, or staying signed in, failed.

    :ivar passing: later it may work by itself: the authorization server was not reached, or had an error of its own
    """

    passing = False


class NeedsLogin(AuthError):
    """Only an interactive sign-in can help: call ``login()`` or connect in the foreground."""


class IssuerMismatch(AuthError):
    """Metadata or an answer comes from another issuer than the one expected."""


class InsufficientScope(AuthError):
    """The token lacks a scope that the server asks for."""


class RegistrationRejected(AuthError):
    """The authorization server refused to register this client."""


class PolicyDenied(McpError):
    """The host's policy forbids the call."""


class ApprovalRefused(PolicyDenied):
    """The call needs an approval that was not given."""


class ToolBlocked(PolicyDenied):
    """The tool is blocked; the message says by which rule."""


class ClientClosed(McpError):
    """Used after ``close()``."""
