"""A small coverage-guided fuzzer: what reaches a new step of the code is kept, and changed further.

``python -m tests.fuzz.fuzzer TARGET --seconds 600`` looks for as long as that, and writes each find, made as short as
it gets, to ``tests/fuzz/finds/TARGET``, where ``test_fuzz.py`` tries it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

__all__ = ["FINDS", "Find", "Fuzzer", "Target"]

FINDS = Path(__file__).parent / "finds"
_LONGEST = 4096  # bytes of an input
_MOST_CHANGES = 5
Step = Tuple[CodeType, int, int]


class Target(NamedTuple):
    """What is tried.

    :ivar check: raises if an input is not treated as it should be
    :ivar seeds: inputs to begin with
    :ivar words: what is put into inputs
    :ivar traced: parts of the paths of the files whose steps count
    """

    check: Callable[[bytes], None]
    seeds: Sequence[bytes]
    words: Sequence[bytes]
    traced: Sequence[str]


class Find(NamedTuple):
    """An input that was not treated as it should be, and what was raised."""

    data: bytes
    error: BaseException


class _Coverage:
    """Which steps from line to line the code takes."""

    def __init__(self, traced: Sequence[str]) -> None:
        self._traced = traced
        self._wanted: Dict[str, bool] = {}
        self.steps: Set[Step] = set()

    def _is_wanted(self, name: str) -> bool:
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = any(part in name for part in self._traced)
        return wanted

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Optional[Callable[..., Any]]:
        code = frame.f_code
        if not self._is_wanted(code.co_filename):
            return None
        before = 0
        add = self.steps.add

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal before
            add((code, before, frame.f_lineno))
            before = frame.f_lineno
            return line

        return line

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the steps of this thread."""
        earlier = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(earlier)


class Fuzzer:
    """Tries one target.

    :param target: what is tried
    :param seed: the same one gives the same inputs
    """

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._chance = random.Random(seed)
        self._coverage = _Coverage(target.traced)
        self._kept: List[bytes] = []
        self.tried = 0

    @property
    def steps(self) -> int:
        """How many steps of the code were reached."""
        return len(self._coverage.steps)

    @property
    def kept(self) -> int:
        """How many inputs are kept, as each reached something new."""
        return len(self._kept)

    def finds(self, goes_on: Callable[[], bool]) -> Iterator[Find]:
        """Try inputs until told to stop; gives those that were not treated as they should be, each kind once."""
        known: Set[str] = set()
        waiting = list(self._target.seeds)
        while waiting or goes_on():
            data = waiting.pop(0) if waiting else self._changed(self._chance.choice(self._kept or [b""]))
            error = self._try(data)
            if error is not None:
                kind = _kind(error)
                if kind not in known:
                    known.add(kind)
                    yield Find(self._shortened(data, kind), error)

    def _try(self, data: bytes) -> Optional[BaseException]:
        self.tried += 1
        before = len(self._coverage.steps)
        try:
            with self._coverage.recording():
                self._target.check(data)
        except Exception as error:  # whatever it is: that is what is looked for
            return error
        if len(self._coverage.steps) > before:
            self._kept.append(data)
        return None

    def _shortened(self, data: bytes, kind: str) -> bytes:
        """The same find with pieces left out, as long as it stays one of its kind."""
        size = len(data) // 2
        while size:
            place = 0
            while place < len(data):
                shorter = data[:place] + data[place + size :]
                error = self._try(shorter)
                if error is not None and _kind(error) == kind:
                    data = shorter
                else:
                    place += size
            size //= 2
        return data

    def _changed(self, data: bytes) -> bytes:
        for _ in range(self._chance.randint(1, _MOST_CHANGES)):
            data = self._changed_once(data)
        return data[:_LONGEST]

    def _changed_once(self, data: bytes) -> bytes:
        chance = self._chance
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 1, 2, 4, 16, 64)))
        piece = data[start:end]
        way = chance.randrange(7)
        if way == 0:
            piece = chance.choice(self._target.words)
        elif way == 1:
            piece += chance.choice(self._target.words)
        elif way == 2:
            piece = b""
        elif way == 3:
            piece *= chance.choice((2, 2, 3, 50, 1000))
        elif way == 4:
            piece = bytes(chance.randrange(256) for _ in piece) or bytes([chance.randrange(256)])
        elif way == 5:
            other = chance.choice(self._kept or [b""])
            place = chance.randint(0, len(other))
            piece = other[place : place + chance.choice((4, 16, 64, 256))]
        else:
            piece, end = data[end : 2 * end - start] + piece, min(len(data), 2 * end - start)
        return data[:start] + piece + data[end:]


def _kind(error: BaseException) -> str:
    """Finds with the same are one defect: what was raised, and where."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return "%s %s" % (type(error).__name__, where)


def main() -> int:
    """Look for finds, and keep them."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    threading.stack_size(64 << 20)
    fuzzer = Fuzzer(TARGETS[options.target], options.seed)
    end = time.monotonic() + options.seconds
    found = 0
    for find in fuzzer.finds(lambda: time.monotonic() < end):
        found += 1
        folder = FINDS / options.target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(find.data).hexdigest()[:12]).write_bytes(find.data)
        print("%r: %s: %s" % (find.data[:300], type(find.error).__name__, find.error), flush=True)
    print(
        "%s, seed %d: %d inputs, %d kept, %d steps of the code, %d finds"
        % (options.target, options.seed, fuzzer.tried, fuzzer.kept, fuzzer.steps, found)
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
