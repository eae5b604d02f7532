"""The process of a stdio server on Windows, held in a job object: all that it starts is in the job, and ends with it.

The process is started suspended and joins the job before it runs, so that nothing it starts can stay outside. The job
ends all its processes when its handle is closed, so a crash of this program leaves none behind either.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Mapping, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed
from mcpsync.transport.command import Launch, explain_start_failure
from mcpsync.transport.masking import Mask

assert sys.platform == "win32"

import ctypes  # noqa: E402 (nothing of it exists elsewhere)
from ctypes import wintypes  # noqa: E402

__all__ = ["JobProcess"]

_CREATE_SUSPENDED = 0x00000004
_KILL_ON_JOB_CLOSE = 0x00002000
_EXTENDED_LIMIT_INFORMATION = 9
_TERMINATED = 1
"""The exit code of what the job ends."""

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_ntdll = ctypes.WinDLL("ntdll")
_kernel32.CreateJobObjectW.restype = wintypes.HANDLE
_kernel32.CreateJobObjectW.argtypes = [wintypes.LPVOID, wintypes.LPCWSTR]
_kernel32.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD]
_kernel32.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
_kernel32.TerminateJobObject.argtypes = [wintypes.HANDLE, wintypes.UINT]
_kernel32.CloseHandle.argtypes = [wintypes.HANDLE]
_ntdll.NtResumeProcess.argtypes = [wintypes.HANDLE]


class _BasicLimits(ctypes.Structure):
    _fields_ = [
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    ]


class _ExtendedLimits(ctypes.Structure):
    _fields_ = [
        ("Basic", _BasicLimits),
        ("IoCounters", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    ]


class JobProcess:
    """One started server.

    :raises ConnectFailed: it could not be started
    :ivar pid: its process id
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
        self._job = _new_job(server)
        try:
            self._popen = subprocess.Popen(
                launch.arguments,
                executable=launch.program,
                bufsize=0,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=dict(environ),
                close_fds=True,
                # A group of its own, so that a Ctrl-C in this console does not reach it; no window for it.
                creationflags=_CREATE_SUSPENDED | subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
            )
        except (OSError, ValueError) as error:
            self.release()
            text = explain_start_failure(error, launch.program, mask.text) if isinstance(error, OSError) else str(error)
            raise ConnectFailed(mask.text(text), server=server) from error
        self.pid = self._popen.pid
        handle = int(self._popen._handle)  # type: ignore[attr-defined]
        joined = _kernel32.AssignProcessToJobObject(self._job, handle)
        if not joined or _ntdll.NtResumeProcess(handle) != 0:
            self._popen.kill()
            self._popen.wait()
            self.release()
            raise ConnectFailed(
                "cannot start the server: its process could not be put into a job object (error %d)"
                % ctypes.get_last_error(),
                server=server,
            )

    @property
    def exit_code(self) -> Optional[int]:
        """As ``subprocess`` gives it; None while it runs."""
        return self._popen.returncode

    def wait(self, deadline: Deadline) -> bool:
        """Wait for its end; False if the deadline came first."""
        try:
            self._popen.wait(deadline.remaining())
        except subprocess.TimeoutExpired:
            return False
        return True

    def end_all(self) -> None:
        """End it and all that it started, at once."""
        if self._job:
            _kernel32.TerminateJobObject(self._job, _TERMINATED)

    def release(self) -> None:
        """Give the job back, which ends whatever is still in it."""
        job, self._job = self._job, None
        if job:
            _kernel32.CloseHandle(job)


def _new_job(server: str) -> Optional[int]:
    job: Optional[int] = _kernel32.CreateJobObjectW(None, None)
    limits = _ExtendedLimits()
    limits.Basic.LimitFlags = _KILL_ON_JOB_CLOSE
    if not job or not _kernel32.SetInformationJobObject(
        job, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
    ):
        raise ConnectFailed(
            "cannot start the server: no job object could be made (error %d)" % ctypes.get_last_error(), server=server
        )
    return job
