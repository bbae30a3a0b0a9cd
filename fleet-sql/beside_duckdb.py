#!/usr/bin/env python3
"""DuckDB beside `levelhead-lab fleet analyze`: the same counts, and what they cost.

    fleet-sql/beside_duckdb.py LEVELHEAD TABLE ANSWERS [THREADS]

Each side runs in processes of its own, one after the other. Writes DuckDB's answers as CSV into the folder ANSWERS, for
`levelhead-fleet-sql check`, and prints CPU seconds and peak memory as JSON. Ends with 1 if the counts differ, and with 3 where the
module duckdb is not there.
"""

import csv
import json
import os
import subprocess
import sys

QUERIES = ["counts", "slowdowns", "tails", "intervals"]


def cost_of(command):
    """What a command printed, its CPU seconds (user and system), and its peak memory in MB."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.execvp(command[0], command)
    os.close(write)
    with os.fdopen(read) as pipe:
        out = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return out, round(usage.ru_utime + usage.ru_stime, 2), usage.ru_maxrss // 1024


def ask(table, answers, threads, name, sql):
    """Runs one query in this process, and writes its answer."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads={int(threads)}")
    connection.execute(f"CREATE VIEW hours AS SELECT * FROM read_parquet('{table}')")
    rows = connection.execute(sql).fetchall()
    with open(os.path.join(answers, name + ".csv"), "w", newline="") as out:
        csv.writer(out).writerows([["columns"] * len(rows[0])] + rows)


def main():
    if sys.argv[1] == "--ask":
        return ask(*sys.argv[2:])
    try:
        import duckdb
    except ImportError:
        print("beside_duckdb.py: the Python module duckdb is not there", file=sys.stderr)
        sys.exit(3)
    levelhead, table, answers = sys.argv[1:4]
    threads = sys.argv[4] if len(sys.argv) > 4 else "2"
    os.makedirs(answers, exist_ok=True)
    costs = {"duckdb": duckdb.__version__, "threads": int(threads)}
    for name in QUERIES:
        sql = subprocess.check_output([levelhead, "fleet", "sql", name], text=True)
        _, cpu, memory = cost_of([sys.executable, __file__, "--ask", table, answers, threads, name, sql])
        costs["duckdb " + name] = {"cpu_s": cpu, "peak_mb": memory}
    counts = {}
    for name, only in [("slowdowns", ["--only", "slowdown"]), ("everything", [])]:
        command = [levelhead, "fleet", "analyze", table, "--json", "--quiet", "--threads", threads]
        out, cpu, memory = cost_of(command + only)
        costs["levelhead " + name] = {"cpu_s": cpu, "peak_mb": memory}
        counts = json.loads(out)["counts"]
    with open(os.path.join(answers, "counts.csv")) as lines:
        theirs = [int(field) for field in list(csv.reader(lines))[1]]
    ours = [counts[name] for name in ["drive_hours", "slow_drive_hours", "raid_hours", "tail_hours"]]
    costs["counts"] = counts
    both = costs["duckdb slowdowns"]["cpu_s"] + costs["duckdb tails"]["cpu_s"]
    costs["slowdowns of DuckDB's tails and slowdowns"] = round(costs["levelhead slowdowns"]["cpu_s"] / both, 3)
    costs["everything of DuckDB's tails and slowdowns"] = round(costs["levelhead everything"]["cpu_s"] / both, 3)
    print(json.dumps(costs, indent=1))
    if ours != theirs:
        sys.exit(f"beside_duckdb.py: DuckDB counts {theirs}, levelhead {ours}")


main()
