"""Processes are remembered by more than their number."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterator, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.transport import process_table
from mcpsync.transport.process_table import Entry, Identity, children_of, identity_of, look, look_together, offspring
from mcpsync.transport.process_tree import Member, ProcessTree
from mcpsync.transport.server_output import describe_exit
from tests.transport.harness import descriptors, running


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether it still answers: one that was killed may look alive for a moment."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    return process.stdout.readline() == b"x\n"


def test_a_reused_process_id_is_spared(stranger: subprocess.Popen[bytes]) -> None:  # B15
    identity = identity_of(stranger.pid)
    assert identity is not None
    former = Identity(stranger.pid, str(int(identity.started) - 1))
    assert Member.of(former) is None
    remembered = Member(former)  # as it is kept where there are no handles
    assert not remembered.alive()
    remembered.signal(signal.SIGKILL)
    assert lives(stranger)
    assert Member(identity).alive()


def test_a_handle_never_leads_to_a_stranger() -> None:  # B15
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        identity = identity_of(process.pid)
        assert identity is not None
        member = Member.of(identity)
        assert member is not None
        if member.handle is None:
            pytest.skip("this system has no handles of processes")
    assert not member.alive()
    member.signal(signal.SIGKILL)  # gone, reaped, its number free: nobody is hit, nothing is raised
    member.release()


def test_a_group_whose_id_was_given_away_is_spared(
    stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:  # B15
    tree = ProcessTree(stranger.pid, "no-such-token")
    identity = identity_of(stranger.pid)
    assert identity is not None
    member = Entry(Identity(1234567, "1"), stranger.pid, stranger.pid)
    monkeypatch.setattr(tree, "_identity", Identity(stranger.pid, "1"))
    monkeypatch.setattr(process_table, "look", lambda tokens: [Entry(identity, 1, stranger.pid), member])
    taken: List[Identity] = []
    monkeypatch.setattr(tree, "_take", taken.extend)
    monkeypatch.setattr("mcpsync.transport.process_tree.offspring", lambda roots, entries: [])
    tree.search(Deadline(5))
    assert taken == []


def test_the_children_of_all_threads_are_found() -> None:
    started: List[subprocess.Popen[bytes]] = []
    done, go = threading.Event(), threading.Event()

    def start() -> None:
        started.append(subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE))
        done.set()
        go.wait(20)

    thread = threading.Thread(target=start)
    thread.start()
    assert done.wait(20)
    assert started[0].pid in (children_of(os.getpid()) or [])
    go.set()
    thread.join()
    started[0].communicate()
    assert children_of(2**22 - 1) == []


def test_ps_tells_the_same_as_proc(stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """What other systems have instead of /proc."""
    real = {entry.identity.pid: entry for entry in look(tokens=True)}
    monkeypatch.setattr(process_table, "HAS_PROC", False)
    entries = {entry.identity.pid: entry for entry in look(tokens=True)}
    mine = entries[stranger.pid]
    assert (mine.parent, mine.group) == (real[stranger.pid].parent, real[stranger.pid].group)
    assert identity_of(stranger.pid) == mine.identity
    assert children_of(os.getpid()) is None
    tree = ProcessTree(os.getpid(), "token")
    tree.remember()
    assert stranger.pid in [member.identity.pid for member in tree.alive()]
    tree.release()
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: (_ for _ in ()).throw(FileNotFoundError("ps")))
    assert look(tokens=True) == []
    assert identity_of(stranger.pid) is None


def test_a_zombie_is_nobody() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identity_of(process.pid) is None
    assert process.wait() == 0


def test_processes_with_strange_names_are_read(tmp_path: Path) -> None:
    tool = tmp_path / "a) Z 1 (b"
    tool.symlink_to("/bin/cat")
    with subprocess.Popen([str(tool)], stdin=subprocess.PIPE) as process:
        entry = next(entry for entry in look(tokens=True) if entry.identity.pid == process.pid)
        assert (entry.parent, entry.group) == (os.getpid(), os.getpgrp())


def test_the_marker_is_found_wherever_it_stands() -> None:
    for environ in ({"MCPSYNC_SERVER": "tok"}, {"A": "b", "MCPSYNC_SERVER": "outer/tok", "Z": "y"}):
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env=environ) as process:
            entry = next(entry for entry in look_together(Deadline(5)) if entry.identity.pid == process.pid)
            assert "tok" in entry.tokens


def test_offspring_is_found_in_any_order() -> None:
    entries = [Entry(Identity(pid, "1"), parent, 1) for pid, parent in ((5, 4), (4, 3), (3, 2), (9, 8), (2, 2))]
    assert {entry.identity.pid for entry in offspring({3}, entries)} == {4, 5}
    assert {entry.identity.pid for entry in offspring({2}, entries)} == {3, 4, 5}


def test_a_tree_is_waited_for_and_released() -> None:
    before = descriptors()
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE) as wrapper:
        assert wrapper.stdout is not None
        sleeper = int(wrapper.stdout.readline())
        tree = ProcessTree(wrapper.pid, "token")
        tree.remember()
        tree.remember()
        assert [member.identity.pid for member in tree.alive()] == [sleeper]
        assert not tree.wait(Deadline(0.05))
        tree.signal(signal.SIGKILL, outside_group=os.getpgrp())
        assert running(sleeper)
        tree.signal(signal.SIGKILL)
        assert tree.wait(Deadline(20))
        assert not tree
        tree.release()
    assert descriptors() == before


@pytest.mark.parametrize(
    ("code", "text"),
    [(0, "exited with code 0"), (-15, "signal 15 (SIGTERM)"), (-99, "signal 99 (unknown)"), (None, "taken by another")],
)
def test_ends_are_described(code: int | None, text: str) -> None:
    assert text in describe_exit(code)
