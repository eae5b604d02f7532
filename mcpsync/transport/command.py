"""From the command that a user wrote to the program that is started.

The program is looked for on the PATH that the *server* gets, not on that of this process: what the one finds the
other must be able to start. Nothing is ever handed to a shell, except for the batch files of Windows, which only
the command interpreter can run; for them the arguments are quoted so that none can be taken for a command.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Union

from mcpsync.errors import ConnectFailed

__all__ = ["Launch", "batch_command_line", "checked_command", "explain_start_failure", "find_program", "prepare"]

_HOW_TO_INSTALL = {
    "node": "install Node.js (https://nodejs.org)",
    "npm": "install Node.js (https://nodejs.org), which brings npm",
    "npx": "install Node.js (https://nodejs.org), which brings npx",
    "bunx": "install Bun (https://bun.sh)",
    "bun": "install Bun (https://bun.sh)",
    "deno": "install Deno (https://deno.com)",
    "uv": "install uv (https://docs.astral.sh/uv)",
    "uvx": "install uv (https://docs.astral.sh/uv), which brings uvx",
    "pipx": "install pipx (https://pipx.pypa.io)",
    "docker": "install Docker (https://docs.docker.com/get-docker) and see that it runs",
    "podman": "install Podman (https://podman.io)",
    "python": "install Python, or name it python3",
    "python3": "install Python (https://www.python.org)",
}
_UNSAFE_IN_BATCH = frozenset('"%\r\n')


class Launch(NamedTuple):
    """What is handed to ``subprocess``.

    :ivar arguments: the argument list; on Windows, for a batch file, a whole command line
    :ivar program: path of the program
    """

    arguments: Union[List[str], str]
    program: str


def prepare(
    command: List[str], environ: Mapping[str, str], cwd: Optional[str], server: str, *, windows: bool = os.name == "nt"
) -> Launch:
    """Find the program of a checked command and settle how it is started.

    :param command: from :func:`checked_command`
    :param environ: the server's variables
    :param cwd: the server's working directory; None: that of this process
    :raises ConnectFailed: there is no such program, or it cannot be started
    """
    if cwd is not None and not os.path.isdir(cwd):
        what = "is not a directory" if os.path.exists(cwd) else "does not exist"
        raise ConnectFailed(
            "cannot start the server: its working directory %r %s" % (cwd, what), server=server, permanent=True
        )
    program = find_program(command[0], environ, cwd, server, windows=windows)
    if windows and program.lower().endswith((".bat", ".cmd")):
        interpreter = environ.get("COMSPEC") or os.path.join(
            environ.get("SYSTEMROOT", "C:\\Windows"), "System32", "cmd.exe"
        )
        return Launch(batch_command_line(program, command[1:], server), interpreter)
    return Launch([program, *command[1:]], program)


def checked_command(command: Sequence[Any], server: str) -> List[str]:
    """The command as a list of strings.

    :raises ConnectFailed: it is empty, one string, or holds something that is no argument
    """
    if isinstance(command, (str, bytes)):
        raise ConnectFailed(
            "the command must be a list of strings, program first, not one string: "
            "write ['npx', '-y', 'some-server'], or use shlex.split",
            server=server,
            permanent=True,
        )
    checked: List[str] = []
    for place, part in enumerate(command):
        text = os.fspath(part) if isinstance(part, os.PathLike) else part
        if not isinstance(text, str):
            raise ConnectFailed(
                "argument %d of the command must be a string, not %s" % (place, type(part).__name__),
                server=server,
                permanent=True,
            )
        if "\0" in text:
            raise ConnectFailed(
                "argument %d of the command contains a NUL character" % place, server=server, permanent=True
            )
        checked.append(text)
    if not checked or not checked[0].strip():
        raise ConnectFailed("the command is empty: name the program that is the server", server=server, permanent=True)
    return checked


def find_program(
    name: str, environ: Mapping[str, str], cwd: Optional[str], server: str, *, windows: bool = os.name == "nt"
) -> str:
    """The path of a program, as the server's own PATH finds it.

    :raises ConnectFailed: not there, or not executable; says what was looked for and what would help
    """
    suffixes = _suffixes(name, environ) if windows else [""]
    if os.path.dirname(name):
        candidates = [os.path.join(cwd or _here(), name)]
    else:
        path = environ.get("PATH", os.defpath)
        candidates = [os.path.join(folder or os.curdir, name) for folder in path.split(os.pathsep)]
        candidates = [os.path.normpath(os.path.join(_here(), candidate)) for candidate in candidates]
    unfit = None
    for candidate in candidates:
        for suffix in suffixes:
            full = candidate + suffix
            if os.path.isfile(full):
                if os.access(full, os.X_OK):
                    return full
                unfit = unfit or full
            elif os.path.dirname(name) and os.path.isdir(full):
                raise ConnectFailed("cannot start the server: %r is a directory" % full, server=server, permanent=True)
    if unfit is not None:
        raise ConnectFailed(
            "cannot start the server: %r is not executable; set its execute bit (chmod +x), or name the interpreter "
            "that runs it first" % unfit,
            server=server,
            permanent=True,
        )
    raise _not_found(name, candidates, "PATH" in environ, server)


def _here() -> str:
    """The working directory; empty if that is gone, so that a relative path finds nothing and an absolute one does."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _not_found(name: str, candidates: List[str], has_path: bool, server: str) -> ConnectFailed:
    if os.path.dirname(name):
        return ConnectFailed(
            "cannot start the server: there is no file %r" % candidates[0], server=server, permanent=True
        )
    text = "cannot start the server: command %r not found" % name
    stem = os.path.splitext(name)[0].lower()
    if stem in _HOW_TO_INSTALL:
        text += "; " + _HOW_TO_INSTALL[stem]
    elif " " in name:
        text += "; the program and each of its arguments must be items of their own"
    elif name.startswith("~"):
        text += "; '~' is not expanded here"
    folders = [os.path.dirname(candidate) for candidate in candidates]
    where = "the server's PATH" if has_path else "the default path, for the server has no PATH"
    return ConnectFailed(
        "%s (looked for in %s: %s)" % (text, where, os.pathsep.join(folders)), server=server, permanent=True
    )


def _suffixes(name: str, environ: Mapping[str, str]) -> List[str]:
    known = [suffix for suffix in environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if suffix]
    if os.path.splitext(name)[1].lower() in (suffix.lower() for suffix in known):
        return [""]
    return [suffix.lower() for suffix in known]


def batch_command_line(program: str, arguments: Sequence[str], server: str) -> str:
    """The command line that makes the Windows command interpreter run a batch file with exactly these arguments.

    Inside double quotes only the quote itself and the percent sign have a meaning to it. They are refused: no
    quoting holds for both the interpreter and the program behind the batch file.

    :raises ConnectFailed: an argument cannot be passed safely
    """
    for argument in (program, *arguments):
        unsafe = sorted(_UNSAFE_IN_BATCH.intersection(argument))
        if unsafe:
            raise ConnectFailed(
                "cannot start the server: %r is a batch file, and its argument contains %s, which the Windows command "
                "interpreter would take for its own; name the program behind the batch file instead (node with the "
                "path of the script, for npx)" % (program, " and ".join(map(repr, unsafe))),
                server=server,
                permanent=True,
            )
    # A backslash before the closing quote would escape it for the program behind the batch file.
    quoted = ['"%s"' % (part + "\\" * (len(part) - len(part.rstrip("\\")))) for part in (program, *arguments)]
    return 'cmd.exe /d /e:on /v:off /s /c "%s"' % " ".join(quoted)


def explain_start_failure(error: OSError, program: str, show: Callable[[str], str]) -> str:
    """Why the system refused to start a program that was found.

    :param show: masks secrets in the system's own text
    """
    reason = error.strerror or str(error)
    helps = {
        errno.ENOEXEC: "it is neither a program nor a script whose first line names its interpreter (#!)",
        errno.ENOENT: "the interpreter that its first line names does not exist",
        errno.E2BIG: "the arguments and the environment together are too long",
        errno.EMFILE: "this process has too many open files",
        errno.EAGAIN: "the system has no room for another process",
        errno.EACCES: "permission denied (the file, a folder above it, or a file system mounted noexec)",
    }
    return show("cannot start the server: %r: %s" % (program, helps.get(error.errno or 0, reason)))
