"""Name the interpreters that are found and those that are missing: ``interpreters.py 3.9 3.10 ...``."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Iterator, List, Optional

CODE = "import platform, sys; print(platform.python_version(), sys.executable)"


def candidates(version: str) -> Iterator[str]:
    """Every program on PATH that has the name; a shim of pyenv may stand before the real one."""
    if version == "%d.%d" % sys.version_info[:2]:
        yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        program = os.path.join(folder, "python%s" % version)
        if os.access(program, os.X_OK):
            yield program


def found(version: str) -> Optional[str]:
    """Its full version and where it is; None if it is missing."""
    for program in candidates(version):
        done = subprocess.run([program, "-c", CODE], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def main(versions: List[str]) -> int:
    missing = []
    for version in versions:
        where = found(version)
        print("python%-5s %s" % (version, where or "MISSING: its tests do not run here"))
        if where is None:
            missing.append(version)
    print("missing interpreters: %s" % (", ".join(missing) or "none"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
