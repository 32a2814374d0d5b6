"""
The table of disturbances in docs/how-we-know.md: how often each mode disturbs each target (disturbances.py).

./dev survive [-- [--only=NAME]... [--mode=NAME]... [--tries=N] [--write]]
"""

import argparse
import datetime
import os
import sys
import time

import disturbances
from subjects import Unavailable

BEGIN, END = "<!-- this table is written by ./dev survive -->", "<!-- end -->"
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "how-we-know.md")
LABELS_MAX = 3  # a cell with more kinds of calls has their number


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(row, mode, tries):
    """{label: disturbances}; nothing if it cannot be measured here."""
    mode.runs = mode.refused = 0
    try:
        result = row.measure(mode, tries)
    except Unavailable as reason:
        say("%s, %s: %s" % (row.name, mode, reason))
        return {}
    result = result if isinstance(result, dict) else {"": int(result)}
    say("%s, %s: %s%s" % (row.name, mode, {key: value for key, value in result.items() if value} or 0,
                          " (%d of %d runs without a result)" % (mode.refused, mode.runs)
                          if mode.refused else ""))
    return result


def cell(count):
    return "–" if count is None else "**%d**" % count if count else "0"


def lines_of(row, modes, tries):
    """(title, cells) for each label with a disturbance, and for all others."""
    counted = [measure(row, mode, tries) for mode in modes]
    labels = list(dict.fromkeys(label for result in counted for label in result))
    quiet = [label for label in labels if not any(result.get(label) for result in counted)]
    groups = [[label] for label in labels if label not in quiet] + ([quiet] if quiet else [])
    for group in groups or [[]]:
        names = ["`%s`" % label for label in group if label and label != "killed"]
        names = "%d kinds" % len(names) if len(names) > LABELS_MAX else ", ".join(names)
        cells = [cell(None if not result else
                      sum(result.get(label, 0) for label in group)) for result in counted]
        yield row.title + (": " + names if names else ""), cells


def tabulate(heads, rows, usual, sentence):
    """The table of the rows that are not as usual in all cells, and a list of the others, which the
    page sums up."""
    lines = ["| %s |" % " | ".join(heads), "|---" * len(heads) + "|"]
    lines += ["| %s | %s |" % (title, " | ".join(cells))
              for title, cells in rows if set(cells) != {usual}]
    others = [title for title, cells in rows if set(cells) == {usual}]
    if others:
        sentence = "\n".join(["", sentence + ":", ""] + ["- " + title for title in others]) + "\n"
    return "\n".join(lines) + "\n", sentence if others else ""


def circumstances(tries):
    return "(%s, Linux %s, %d processors%s)" % (
        datetime.date.today().isoformat(), os.uname().release.split("-")[0], os.cpu_count(),
        ", %d tries in each cell" % tries if tries else "")


def write(text, begin=BEGIN):
    """Replaces what follows a mark in the page of all tables."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    begin = page.index(begin) + len(begin)
    end = page.index(END, begin)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("%s\n\n%s\n%s" % (page[:begin], text, page[end:]))


def main():
    parser = argparse.ArgumentParser(description="Count what each mode does to processes.")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="measure only this row; may be repeated")
    parser.add_argument("--mode", action="append", metavar="NAME",
                        help="measure only this mode; may be repeated")
    parser.add_argument("--tries", type=int, default=300, help="tries in each cell (default: 300)")
    parser.add_argument("--write", action="store_true", help="write the table to docs/how-we-know.md")
    arguments = parser.parse_args()
    rows = [row for row in disturbances.ROWS if not arguments.only or row.name in arguments.only]
    modes = [mode for mode in disturbances.MODES
             if not arguments.mode or mode.name in arguments.mode]
    measured = []
    begin = time.monotonic()
    for number, row in enumerate(rows):
        say("%d of %d rows after %.0f s" % (number, len(rows), time.monotonic() - begin))
        measured += lines_of(row, modes, arguments.tries)
    say("%.0f s" % (time.monotonic() - begin))
    table, others = tabulate(["disturbance"] + [mode.title for mode in modes], measured, "0",
                             "0 in each column")
    print(table + others + "\n" + circumstances(arguments.tries))
    if arguments.write:
        write(table)


if __name__ == "__main__":
    main()
