"""Clients in turns over many cases; appends a JSON line a run, which report.py makes tables of.

run_all.py --clients x,y [--rounds 5] [--cases a,b] [--transport stdio|http] [--extra "--era legacy"] [--out FILE]
"""

import argparse
import json
import os
import time

from harness import HERE, measure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default="serial")
    parser.add_argument("--clients", required=True)
    parser.add_argument("--transport", default="stdio")
    parser.add_argument("--extra", default="")
    parser.add_argument("--out", default=os.path.join(HERE, "results.jsonl"))
    given = parser.parse_args()
    clients = given.clients.split(",")
    for case in given.cases.split(","):
        for turn in range(given.rounds):
            for client in clients if turn % 2 == 0 else clients[::-1]:
                began = time.time()
                arguments = "--transport %s --case %s %s" % (given.transport, case, given.extra)
                result = {"transport": given.transport, "case": case, **measure(client, arguments)}
                result.update(round=turn, t=time.time() - began, load=os.getloadavg()[0])
                with open(given.out, "a") as out:
                    out.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
