"""What a server writes: frames, noise around them, and stderr."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, MessageTooLarge, ProcessExited
from tests.transport.harness import connected, python


def says(data: bytes, then: str = "sys.stdin.read()") -> List[str]:
    return python("import sys; sys.stdout.buffer.write(%r); sys.stdout.flush(); %s" % (data, then))


def test_frames_are_found_between_banners_and_blank_lines() -> None:  # C1
    text = b'Welcome!\n\n{"a":1}\r\n \t\n[INFO] no json\n  {"b":2}\nlog\x1b[31m red\n\xef\xbb\xbf{"c":3}\n[{"d":4}]\n'
    with connected(says(text)) as connection:
        got = [connection.sink.next() for _ in range(4)]
    assert got == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'[{"d":4}]']
    assert [kind for kind, _ in connection.sink.warnings] == ["noise"] * 3
    assert connection.sink.warnings[2][1].endswith("log\\x1b[31m red")


def test_log_text_glued_to_a_frame_is_explained() -> None:  # C1
    with connected(says(b'Loading... {"jsonrpc":"2.0","id":1,"result":{}}\n{"next":1}\n')) as connection:
        assert connection.sink.next() == b'{"next":1}'
    ((kind, detail),) = connection.sink.warnings
    assert kind == "glued"
    assert "same line" in detail


def test_a_long_line_of_noise_is_quoted_in_part() -> None:
    with connected(says(b"x" * 5000 + b"\n{}\n")) as connection:
        assert connection.sink.next() == b"{}"
    assert len(connection.sink.warnings[0][1]) < 300


def test_invalid_utf_8_does_not_stop_the_stream() -> None:  # C2
    with connected(says(b'{"a":"\xff\xfe"}\n\xc3(\n{"b":1}\n')) as connection:
        assert connection.sink.next() == b'{"a":"\xff\xfe"}'
        assert connection.sink.next() == b'{"b":1}'
    assert [kind for kind, _ in connection.sink.warnings] == ["noise"]


def test_frames_split_at_every_byte_arrive_whole() -> None:
    code = 'import os\nfor byte in b\'{"a":1}\\r\\n{"b":2}\\n\': os.write(1, bytes([byte]))\nos.read(0, 1)'
    with connected(python(code)) as connection:
        assert [connection.sink.next(), connection.sink.next()] == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("megabytes", [5, 40])
def test_a_long_line_is_taken(megabytes: int) -> None:  # C3
    size = megabytes * 1024 * 1024
    command = python("import sys; sys.stdout.write('{' + 'x' * %d + '}\\n{}\\n'); sys.stdout.flush(); input()" % size)
    with connected(command) as connection:
        assert len(connection.sink.next()) == size + 2
        assert connection.sink.next() == b"{}"


def test_a_line_beyond_the_cap_ends_the_connection_clearly() -> None:  # C3
    with connected(says(b'{"good":1}\n{' + b"x" * 70_000 + b"}\n{}\n"), max_message=65_536) as connection:
        assert connection.sink.next() == b'{"good":1}'
        loss = connection.sink.loss()
        assert isinstance(loss, MessageTooLarge)
        assert (loss.limit, loss.server) == (65_536, "server")
        with pytest.raises(MessageTooLarge):
            connection.send(b"{}")
        connection.reader.join(5)
        assert not connection.reader.is_alive()


def test_what_came_in_one_piece_before_a_line_that_is_too_long_is_kept() -> None:
    with connected(says(b'{"a":1}\n{"b":2}\n{' + b"x" * 5000), max_message=1000) as connection:
        assert isinstance(connection.sink.loss(), MessageTooLarge)
        assert [connection.sink.next(), connection.sink.next()] == [b'{"a":1}', b'{"b":2}']


def test_much_stderr_delays_no_answer_and_is_bounded() -> None:  # C5
    code = "import sys\nfor _ in range(64): sys.stderr.write('e' * 4096 + ('\\n' if _ % 2 else ''))\n"
    code += "sys.stderr.flush(); print('{}', flush=True); input()"
    with connected(python(code)) as connection:
        assert connection.sink.next() == b"{}"
        assert 0 < len(connection.transport.stderr_tail) <= 8192


def test_stderr_goes_to_the_logger_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcpsync.server.files")
    code = "import os, sys; print('key', os.environ['MY_TOKEN'], sys.argv, file=sys.stderr); sys.exit(1)"
    secret, other = "s3cr3t-value", "t0ps3cret"
    command = python(code, "--api-key", other, "--token=" + other)
    with connected(command, env={"MY_TOKEN": secret}, server_name="files") as connection:
        loss = connection.sink.loss()
    logged = [record.getMessage() for record in caplog.records if record.name == "mcpsync.server.files"]
    assert logged == ["key *** ['-c', '--api-key', '***', '--token=***']"]
    for text in (str(loss), repr(loss.__dict__), connection.transport.stderr_tail):
        assert secret not in text
        assert other not in text


def test_a_sink_for_stderr_that_raises_is_told_of_and_survived() -> None:
    lines: List[str] = []

    def take(line: str) -> None:
        lines.append(line)
        raise KeyError(line)

    code = "import sys; print('one', file=sys.stderr, flush=True); print('{}', flush=True); input(); sys.exit('two')"
    with connected(python(code), stderr=take) as connection:
        assert connection.sink.next() == b"{}"
        connection.send(b"{}")
        assert isinstance(connection.sink.loss(), ProcessExited)
    assert lines == ["one", "two"]
    assert {kind for kind, _ in connection.sink.warnings} == {"stderr"}


def test_everything_that_was_written_before_the_end_arrives() -> None:
    many = b"".join(b'{"n":%d}\n' % number for number in range(5000))
    with connected(says(many, "sys.exit(7)")) as connection:
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == 7
        assert [connection.sink.next() for _ in range(5000)] == many.splitlines()


def test_closing_stdout_while_running_is_a_loss() -> None:
    from mcpsync.transport.stdio_server import Graces

    code = "import os, time; os.close(1); os.write(2, b'bye'); time.sleep(60)"
    start = time.monotonic()
    with connected(python(code), graces=Graces(silence=0.2, eof=0.05)) as connection:
        loss = connection.sink.loss()
        assert 0.2 <= time.monotonic() - start < 2
        assert type(loss) is ConnectionLost
        assert "closed its standard output, but it still runs; stderr: bye" in str(loss)


def test_closing_stdout_just_before_the_end_tells_the_exit_code() -> None:
    with connected(python("import os, time; os.close(1); os.close(2); time.sleep(0.1); os._exit(5)")) as connection:
        loss = connection.sink.loss()
        assert isinstance(loss, ProcessExited)
        assert loss.exit_code == 5


def test_a_closed_stderr_costs_nothing() -> None:
    with connected(python("import os; os.close(2); print('{}', flush=True); input()")) as connection:
        assert connection.sink.next() == b"{}"
        before = time.process_time()
        connection.reader.join(0.3)
        assert time.process_time() - before < 0.1


def context_switches(thread: threading.Thread) -> int:
    status = Path("/proc/self/task/%d/status" % (thread.native_id or 0)).read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def test_the_reader_of_a_quiet_server_does_not_wake_up() -> None:
    with connected(["/bin/cat"]) as connection:
        connection.send(b"{}")
        connection.sink.next()
        connection.reader.join(0.05)  # it goes back to its poll
        before = context_switches(connection.reader)
        connection.reader.join(0.5)
        assert context_switches(connection.reader) == before


def test_a_close_is_no_loss() -> None:
    with connected(says(b"{}\n")) as connection:
        assert connection.sink.next() == b"{}"
        connection.transport.close(Deadline(5))
        assert connection.sink.losses.empty()
