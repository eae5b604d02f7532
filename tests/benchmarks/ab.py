"""Clients in turns: ab.py ROUNDS METRIC[,METRIC...] "CLIENT ARGS :: CLIENT ARGS ..."

Prints the median of each and its ratio to the first. The order alternates from round to round.
"""

import statistics
import sys

from harness import measure


def main(rounds, metrics, specs):
    got = {spec: {metric: [] for metric in metrics} for spec in specs}
    failed = {}
    for turn in range(rounds):
        for spec in specs if turn % 2 == 0 else specs[::-1]:
            client, _, arguments = spec.partition(" ")
            result = measure(client, arguments)
            if "error" in result:
                failed[spec] = result["error"]
            for metric in metrics:
                if metric in result:
                    got[spec][metric].append(result[metric])
    for metric in metrics:
        first = got[specs[0]][metric]
        for spec in specs:
            values = got[spec][metric]
            if values:
                median = statistics.median(values)
                ratio = "x%.3f" % (median / statistics.median(first)) if first else ""
                text = "median %10.3f  min %10.3f max %10.3f  %s" % (median, min(values), max(values), ratio)
            else:
                text = "n/a " + failed.get(spec, "")
            print("%-22s %-50s %s" % (metric, spec, text), flush=True)
    if failed:
        print("FAILED ROUNDS:", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2].split(","), [s.strip() for s in " ".join(sys.argv[3:]).split("::")]))
