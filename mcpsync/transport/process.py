"""The process of a stdio server: started, watched, ended, reaped.

It leads a session and a process group of its own, so that a terminal's Ctrl-C does not reach it and so that the whole
group can be signalled. Its end is told by a descriptor that becomes readable (a pidfd; where there is none, a small
thread that waits and closes a pipe). It stays unreaped until its tree was swept: as long as it is a zombie the system
gives its process id, and its group's, to nobody else.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, Callable, List, Mapping, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed
from mcpsync.transport.command import Launch, explain_start_failure
from mcpsync.transport.masking import Mask
from mcpsync.transport.process_table import marked
from mcpsync.transport.process_tree import ProcessTree, open_handle
from mcpsync.transport.stdio_server import Graces

assert sys.platform != "win32"

__all__ = ["ServerProcess"]

_log = logging.getLogger("mcpsync.transport")
_CHUNK = 65536
_LAST_WAIT = 0.25
"""Seconds that a killed process gets to disappear when the deadline has passed already."""
_KILL_ROUNDS = 5


class _Popen(subprocess.Popen[bytes]):
    """Leaves no process behind when Ctrl-C strikes before anybody knows of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        try:
            super().__init__(*arguments, **options)
        except BaseException:
            if self.returncode is None and self.pid is not None:
                self.kill()
                self.wait()
            raise


class ServerProcess:
    """One started server.

    :param launch: what to start
    :param environ: its variables; the marker is added
    :param cwd: its working directory
    :param stdin: descriptor that becomes its stdin; likewise ``stdout`` and ``stderr``
    :param server: name of the server, for errors
    :param mask: hides secrets in errors
    :raises ConnectFailed: it could not be started
    :ivar pid: its process id, and that of its group
    :ivar exit_notice: a descriptor that is readable once it has ended
    :ivar exit_code: as ``subprocess`` gives it; None before the end is known, or when another part of this program
        took the exit code away
    """

    def __init__(
        self,
        launch: Launch,
        environ: Mapping[str, str],
        cwd: Optional[str],
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        server: str,
        mask: Mask,
    ) -> None:
        token = os.urandom(16).hex()
        variables = dict(environ)
        marked(variables, token)
        try:
            self._popen = _Popen(
                launch.arguments,
                executable=launch.program,
                bufsize=0,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=variables,
                close_fds=True,
                start_new_session=True,
            )
        except OSError as error:
            if cwd is not None and error.filename == cwd:
                text = "cannot start the server: its working directory %r cannot be entered: %s" % (
                    cwd,
                    error.strerror,
                )
            else:
                text = explain_start_failure(error, launch.program, mask.text)
            raise ConnectFailed(text, server=server) from error
        except ValueError as error:  # a variable whose name or value the system cannot take
            raise ConnectFailed(
                mask.text("cannot start the server: its environment: %s" % error), server=server
            ) from error
        self.pid = self._popen.pid
        self.exit_code: Optional[int] = None
        self.ended = False
        self._server = server
        self._reaped = False
        self._reaping = threading.RLock()  # guards the state of the process: ended, exit_code, reaped
        try:
            self._tree = ProcessTree(self.pid, token)
            handle = open_handle(self.pid)
            self.exit_notice = handle if handle is not None else self._wait_on_thread()
        except BaseException:  # no descriptor left, or Ctrl-C: nobody would know of the process
            self._popen.kill()
            self._popen.wait()
            raise

    def has_ended(self) -> bool:
        """Whether it has ended; notes its exit code, and leaves it to be reaped later."""
        with self._reaping:
            if self.ended:
                return True
            if not hasattr(os, "waitid"):
                return self._reap()
            try:
                status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # reaped by another part of this program, or SIGCHLD is ignored
                self.ended = self._reaped = True
                return True
            if status is None:
                return False
            self.exit_code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
            self.ended = True
            return True

    def shut_down(self, deadline: Deadline, graces: Graces, close_stdin: Callable[[], None], drains: List[int]) -> None:
        """End it and all it started: close its stdin, wait, SIGTERM, wait, SIGKILL, reap.

        :param deadline: for the whole; SIGKILL and reaping may take a quarter of a second more
        :param close_stdin: closes our end of its stdin
        :param drains: descriptors to read and forget meanwhile, since nobody else does; a server that cannot
            write its last words would not end
        """
        budget = deadline.remaining()
        eof, term, linger = graces.eof, graces.term, graces.linger
        if budget is not None:
            eof, term, linger = min(eof, 0.4 * budget), min(term, 0.3 * budget), min(linger, 0.1 * budget)
        try:
            was_lost = self.has_ended()
            if not was_lost:
                self._tree.remember()
            close_stdin()
            ended = was_lost or self._wait(deadline.sooner(eof), drains)
            if ended and not was_lost and not self._tree and self._group_is_empty():
                return
            self._tree.search(deadline)
            if ended and self._tree.wait(deadline.sooner(linger)):
                self._reap()
                return
            self._signal(signal.SIGTERM)
            self._gone(deadline.sooner(term), drains)
            self._kill(deadline)
        except BaseException:  # Ctrl-C in one of the waits: no time for manners
            self._kill(Deadline(0))
            raise
        finally:
            self._tree.release()

    def release(self) -> None:
        """Give back the descriptor. The object is of no use afterwards."""
        if self.exit_notice >= 0:
            os.close(self.exit_notice)
            self.exit_notice = -1

    def forget(self) -> None:
        """In a forked child: it is the parent's process; never wait for it, signal it, or complain about it."""
        self._reaping = threading.RLock()
        self.ended = self._reaped = True
        self._popen.returncode = 0

    def _wait_on_thread(self) -> int:
        notice, held = os.pipe()

        def wait() -> None:
            try:
                self._await_end()
            finally:
                # A byte, for a forked child may hold the other end open too.
                with suppress(OSError):  # nobody is interested any more
                    os.write(held, b"\0")
                os.close(held)

        try:
            threading.Thread(target=wait, name="mcpsync-%s-waiter" % self._server, daemon=True).start()
        except RuntimeError as error:
            os.close(notice)
            os.close(held)
            raise ConnectFailed("cannot start the server: %s" % error, server=self._server) from error
        return notice

    def _wait(self, deadline: Deadline, drains: List[int]) -> bool:
        poller = select.poll()
        poller.register(self.exit_notice, select.POLLIN)
        for descriptor in drains:
            poller.register(descriptor, select.POLLIN)
        while not self.has_ended():
            left = deadline.remaining()
            if left == 0:
                return False
            for descriptor, _ in poller.poll(None if left is None else left * 1000):
                if descriptor != self.exit_notice and not _drained(descriptor):
                    poller.unregister(descriptor)
        return True

    def _gone(self, deadline: Deadline, drains: List[int]) -> bool:
        return self._wait(deadline, drains) and self._tree.wait(deadline)

    def _group_is_empty(self) -> bool:
        """Reap, and see whether the group outlives its leader."""
        self._reap()
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def _signal(self, number: int) -> None:
        """Signal the group as a whole while its id is surely ours, and each member outside of it."""
        with self._reaping:
            self.has_ended()
            whole = not self._reaped
            if whole:
                try:
                    os.killpg(self.pid, number)
                except ProcessLookupError:
                    pass
                except PermissionError:  # macOS says so too if there are zombies among them
                    whole = False
        self._tree.signal(number, outside_group=self.pid if whole else None)

    def _kill(self, deadline: Deadline) -> None:
        """SIGKILL until nothing is left. A process may start another while we look, hence the rounds."""
        until = Deadline.at_moment(max(deadline.at, Deadline(_LAST_WAIT).at))
        for _ in range(_KILL_ROUNDS):
            if not self.ended or self._tree.alive():
                self._signal(signal.SIGKILL)
                if not self._gone(until, []):
                    break
            self._tree.search(until)
            if not self._tree.alive():
                break
        reaped = self._reap()
        if not reaped or self._tree.alive():
            _log.warning("server %r: process %d, or one that it started, survived SIGKILL", self._server, self.pid)
        if not reaped:
            # it may only be slow to die, on a busy machine or in a system call: its end is seen to when it comes
            with suppress(RuntimeError):
                threading.Thread(target=self._reap_later, name="mcpsync-%s-waiter" % self._server, daemon=True).start()

    def _reap_later(self) -> None:
        self._await_end()
        self._reap()

    def _await_end(self) -> None:
        with suppress(ChildProcessError):  # reaped by another part of this program: ended it has
            if hasattr(os, "waitid"):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            else:
                self._popen.wait()

    def _reap(self) -> bool:
        with self._reaping:
            if self._reaped:
                self._popen.poll()  # lets it notice that there is nothing to wait for
                return True
            code = self._popen.poll()
            if code is None:
                return False
            if self.exit_code is None:
                self.exit_code = code
            self.ended = self._reaped = True
            return True


def _drained(descriptor: int) -> bool:
    """Read and forget one chunk; False: there will be no more."""
    try:
        return bool(os.read(descriptor, _CHUNK))
    except BlockingIOError:
        return True
    except OSError:
        return False
