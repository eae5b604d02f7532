"""A process that makes signed calls and says what came of them: ``signed_worker.py JSON``.

It prints ``calling`` when it begins, and at its end one JSON object: how many calls were good, the others by their
errors, and how long the longest took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any, Dict

import mcpsync
from mcpsync.auth.credentials import Credentials, StoreKey
from mcpsync.auth.store import FileStore


class DiesAfterStoring(FileStore):
    """A store in whose process nothing happens once fresh tokens are kept."""

    def save(self, key: StoreKey, value: Credentials) -> None:
        super().save(key, value)
        os.kill(os.getpid(), signal.SIGKILL)


def nobody(url: str) -> str:
    raise AssertionError("nobody is to be asked")


def main(how: Dict[str, Any]) -> None:
    store = (DiesAfterStoring if how.get("dies") else FileStore)(how["folder"])
    auth = mcpsync.OAuth(way=nobody, store=store, account="shared", interactive=False)
    timeouts = mcpsync.Timeouts(connect=how.get("seconds", 10), call=how.get("seconds", 10))
    good: Counter[int] = Counter()
    errors: Counter[str] = Counter()
    longest = [0.0]
    until = time.monotonic() + how.get("lasts", 0)

    def call(client: mcpsync.Client, index: int) -> None:
        while True:
            began = time.monotonic()
            try:
                assert client.call_tool("work").text == "done"
                good[index] += 1
            except mcpsync.McpError as error:
                errors["%s: %s" % (type(error).__name__, error.message)] += 1
            longest[0] = max(longest[0], time.monotonic() - began)
            if time.monotonic() >= until:
                return

    print("calling", flush=True)
    client = mcpsync.Client(how["url"], auth=auth, timeouts=timeouts, protocol="modern")
    threads = [threading.Thread(target=call, args=(client, index)) for index in range(how.get("threads", 1))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if not how.get("leaves"):
        client.close()
    print(json.dumps({"good": sum(good.values()), "errors": errors, "longest": longest[0]}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
