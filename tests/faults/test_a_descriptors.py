"""Few descriptors: many calls at a time leave enough of them to connect anew, and to the program itself."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import List

import pytest

import mcpsync
from tests.faults.watch import open_descriptors
from tests.peers.scripted import peer


@pytest.mark.skipif(sys.platform == "win32", reason="no limit to be set")
def test_a16_many_threads_leave_descriptors_to_a_new_connection_and_to_the_program(tmp_path: Path) -> None:
    import resource

    server = peer(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with mcpsync.connect(server.command, protocol="legacy") as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 40, limits[1]))
        try:
            together = threading.Barrier(60)
            answers: List[bool] = []

            def call() -> None:
                together.wait()
                answers.extend(client.call_tool("echo").is_error for _ in range(10))

            threads = [threading.Thread(target=call) for _ in range(60)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert answers == [False] * 600
            client.reconnect()
            assert not client.call_tool("echo").is_error
            with open(__file__):
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
