"""``BROWSER`` of the tests: shows a URL in the Chromium whose WebDriver session is in ``MCPSYNC_TEST_BROWSER``."""

from __future__ import annotations

import json
import os
import sys
import urllib.request


def main() -> None:
    address = os.environ["MCPSYNC_TEST_BROWSER"] + "/url"
    body = json.dumps({"url": sys.argv[1]}).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60):
        pass


if __name__ == "__main__":
    main()
