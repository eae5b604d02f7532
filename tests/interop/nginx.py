"""nginx with TLS before a server: one path with ``proxy_buffering`` off, one with it on, five seconds of idleness."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Dict, List

from tests.interop.http_peers import START_SECONDS, STOP_SECONDS, free_port
from tests.interop.peers import PeerUnavailable

IDLE_SECONDS = 5.0
PATHS = ("unbuffered", "buffered")

CONFIGURATION = """
%(user)s
worker_processes 1;
daemon off;
pid %(folder)s/nginx.pid;
error_log stderr notice;
events { worker_connections 512; }
http {
    log_format plain '$connection $connection_requests $request_method $uri $status';
    access_log %(folder)s/access.log plain;
    client_body_temp_path %(folder)s/body;
    proxy_temp_path %(folder)s/proxy;
    fastcgi_temp_path %(folder)s/fastcgi;
    uwsgi_temp_path %(folder)s/uwsgi;
    scgi_temp_path %(folder)s/scgi;
    keepalive_timeout %(idle)ds;
    proxy_http_version 1.1;
    proxy_read_timeout 1h;
    server {
        listen 127.0.0.1:%(port)d ssl;
        ssl_certificate %(certificate)s;
        ssl_certificate_key %(key)s;
        location /unbuffered/ {
            proxy_pass %(behind)s/;
            proxy_buffering off;
        }
        location /buffered/ {
            proxy_pass %(behind)s/;
            proxy_buffering on;
            # with which the servers would turn it off
            proxy_ignore_headers X-Accel-Buffering;
        }
    }
}
"""


def program() -> str:
    """Where nginx is; Debian keeps it off the PATH of users."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise PeerUnavailable("nginx: it is not installed")
    return found


class Nginx:
    """Before a server.

    :param folder: for what it needs
    :param behind: URL of the server, without a path
    """

    def __init__(self, folder: Path, behind: str, certificate: str, key: str) -> None:
        self._folder = folder
        port = free_port()
        self._url = "https://127.0.0.1:%d" % port
        configuration = folder / "nginx.conf"
        configuration.write_text(
            CONFIGURATION
            % {
                "user": "user root;" if os.geteuid() == 0 else "",
                "folder": folder,
                "idle": IDLE_SECONDS,
                "port": port,
                "behind": behind,
                "certificate": certificate,
                "key": key,
            }
        )
        self._process = subprocess.Popen(
            [program(), "-p", str(folder), "-c", str(configuration)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        late = threading.Timer(START_SECONDS, self._process.kill)
        late.start()
        printed: List[str] = []
        try:
            for line in self._process.stderr:
                printed.append(line)
                if "start worker process " in line:
                    return
        finally:
            late.cancel()
            late.join()
        self.stop()
        raise AssertionError("nginx did not start: %s" % "".join(printed))

    def __enter__(self) -> Nginx:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def url(self, path: str) -> str:
        """Of the MCP endpoint behind one of the ``PATHS``."""
        return "%s/%s/mcp" % (self._url, path)

    def requests_on(self) -> Dict[str, int]:
        """How many requests came on each connection, by its number."""
        served: Dict[str, int] = {}
        for line in (self._folder / "access.log").read_text().splitlines():
            connection, number = line.split()[:2]
            served[connection] = max(served.get(connection, 0), int(number))
        return served

    def stop(self) -> None:
        """End it and its worker."""
        self._process.terminate()
        self._process.communicate(timeout=STOP_SECONDS)
