"""Runs one case of one client in a process of its own; what ab.py, run_all.py and the short form share."""

import json
import os
import shlex
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 300


def interpreter(client, home=HERE):
    """The Python of the environment that the client lives in."""
    with open(os.path.join(HERE, "clients.json")) as file:
        environment = json.load(file)["venv"][client.partition(":")[0]]
    return os.path.join(home, "venvs", environment, "bin", "python")


def measure(client, arguments, home=HERE, cpu=None):
    """What bench.py printed, as a dict; it has ``error`` if the run failed.

    :param arguments: as ``--case serial --n 100``, one string
    :param cpu: the CPU to pin client and server to, None: where the parent runs
    """
    command = [interpreter(client, home), os.path.join(home, "bench.py"), "--client", client, *shlex.split(arguments)]
    pin = None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})
    # A group of its own, so that a run that hangs takes its server and its children with it.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=pin,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
    except BaseException as cut:
        os.killpg(process.pid, 9)
        process.communicate()
        if isinstance(cut, subprocess.TimeoutExpired):
            return {"client": client, "error": "no end within %d s" % SECONDS}
        raise
    try:
        return json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return {"client": client, "error": "exit code %d: %s" % (process.returncode, err[-300:])}
