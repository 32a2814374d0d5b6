"""
The table of situations in docs/how-we-know.md: stacksnap, eu-stack and gdb on the same situations
(situations.py), judged by the same measure (judge.py).

./dev peers [-- [--only NAME]... [--write]]
"""

import argparse
import datetime
import os
import random
import re
import shutil
import subprocess

import codes  # noqa: F401: adds to ALL
import fates
import judge
import killing
import rights  # noqa: F401: likewise
from situations import ALL
from subjects import Lab, Unavailable
from survive import say, tabulate, write

BEGIN = "<!-- this table is written by ./dev peers -->"
RACE_LIMIT_S = 20


def merge(texts):
    """One cell for all subjects of a situation."""
    words = []
    for text in dict.fromkeys(texts):
        count = texts.count(text)
        words.append(text if count == len(texts) else
                     "%d of %d: %s" % (count, len(texts), text))
    return "<br>".join(words)


def judged(tool, situation):
    texts = []
    with Lab() as lab:
        for subject in situation.make(lab):
            verdict = judge.judge(tool, subject, situation.limit_s)
            texts.append(verdict.text())
            judge.resume(subject)
    return merge(texts)


def raced(tool, tries):
    """How often the tool changed how the process ended."""
    generator = random.Random(7)
    outcomes = []
    for fate in fates.FATES:
        for _ in range(tries):
            with Lab() as lab:
                outcomes.append(fates.meet(lab, fate, tool.command, generator,
                                           RACE_LIMIT_S))
    met = [outcome for outcome in outcomes if not outcome.missed]
    broken = sum(not outcome.right for outcome in met)
    hung = sum(outcome.hung for outcome in outcomes)
    text = ("ended as without the tool in all %d tries" % len(met) if not broken else
            "**ended otherwise in %d of %d tries**" % (broken, len(met)))
    return text + ("<br>the tool hung in %d" % hung if hung else "")


def killed(tool, tries):
    with Lab() as lab:
        target = lab.start("sigcount")
        left = killing.kill_at_random(tool.command, target.pid, tries, random.Random(7))
        try:
            lost = tries - int(re.sub(r"\D", "", target.finish()[1]) or 0)
        except subprocess.TimeoutExpired:
            return "**never continued**"
    text = "left stopped in %d of %d" % (left, tries)
    if left:
        text = "**%s**" % text
    return text + ("<br>**%d signals lost**" % lost if lost else "<br>no signal lost")


class Row:
    def __init__(self, name, title, measure):
        self.name = name
        self.title = title
        self.measure = measure


def rows():
    found = [Row(each.name, each.title, lambda tool, each=each: judged(tool, each))
             for each in ALL]
    found.append(Row("races", "it exits, crashes, forks, executes, or gets `SIGKILL`, "
                     "`SIGTERM`, `SIGSEGV`, `SIGSTOP` or `SIGCONT` during the snapshot",
                     lambda tool: raced(tool, 20 if tool is judge.OURS else 3)))
    found.append(Row("killed", "the tool is killed (`SIGKILL`) at a random moment, and the "
                     "process gets a signal",
                     lambda tool: killed(tool, 300 if tool is judge.OURS else 40)))
    return found


def cell(row, tool):
    try:
        text = row.measure(tool)
    except Unavailable as reason:
        text = "not measured: %s" % reason
    say("%s, %s: %s" % (row.name, tool.name, text))
    return text


def first_line(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout.splitlines()[0]


def circumstances():
    words = [datetime.date.today().isoformat(), "Linux " + os.uname().release.split("-")[0],
             "%d processors" % os.cpu_count()]
    for program, pattern in (("gdb", r"^GNU gdb \(.*\) "), ("eu-stack", r"^.*\) ")):
        if shutil.which(program):
            words.append(program + " " +
                         re.sub(pattern, "", first_line([program, "--version"])))
    return "(%s)" % ", ".join(words)


def table(only):
    """The table, and a list of the situations about which every tool is right."""
    tools = [judge.OURS] + [tool for tool in (judge.EU_STACK, judge.GDB)
                            if shutil.which(tool.name)]
    measured = [(row.title, [cell(row, tool) for tool in tools])
                for row in rows() if not only or row.name in only]
    return tabulate(["situation"] + [tool.name for tool in tools], measured, judge.RIGHT,
                    "Each tool is right about")


def main():
    parser = argparse.ArgumentParser(description="Compare tools on difficult programs.")
    parser.add_argument("--only", action="append", help="measure only the row with this name; may be repeated")
    parser.add_argument("--write", action="store_true", help="write the table to docs/how-we-know.md")
    arguments = parser.parse_args()
    text, others = table(arguments.only)
    print("%s%s\n%s" % (text, others, circumstances()))
    if arguments.write:
        write(text, BEGIN)


if __name__ == "__main__":
    main()
