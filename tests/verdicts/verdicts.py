#!/usr/bin/env python3
"""Runs the cases: what stacksnap hang and stacksnap say about each, and whether that is the truth.

A hang is named if each of its expressions matches the first screen (24 lines of 80 columns), partly
named if some do, else missed. It misleads if an expression of what is not so matches: a wrong owner,
a deadlock that is none; or if the verdict is idle where more could be shown, and the screen shows
nothing of it. Each healthy program that is called stuck, blocked or deadlocked is a false alarm.

Environment: STACKSNAP is the tool."""

import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import cases
from cases import ALL, DEADLOCK, Lab, Unavailable, stands_still, task_states
import families  # noqa: F401: adds to ALL

STACKSNAP = os.environ.get("STACKSNAP", "stacksnap")
RATES = ("named", "partly", "missed", "misled")
LINES, COLUMNS = 24, 80
CASE_LIMIT_S = 240


def first_screen(text):
    rows, shown = 0, []
    for line in text.splitlines():
        rows += max(1, math.ceil(len(line) / COLUMNS))
        if rows > LINES:
            break
        shown.append(line)
    return "\n".join(shown)


def tool(*words):
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(cases.SCRATCH, "cache"), LC_ALL="C.UTF-8")
    done = subprocess.run([STACKSNAP, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=CASE_LIMIT_S, env=env, check=False)
    return done.returncode, (done.stdout.decode("utf-8", "replace") +
                             done.stderr.decode("utf-8", "replace"))


def matches(expression, text):
    return re.search(expression, text, re.M) is not None


def rate(case, text, facts, verdict):
    """How well a text tells the truth, and what is missing or wrong."""
    def fill(expression):
        return re.sub(r"\{(\w+)\}", lambda found: str(facts.get(found[1], found[0])), expression)
    screen = first_screen(text)
    missing = [one for one in map(fill, case.expect) if not matches(one, screen)]
    wrong = [one for one in map(fill, case.never) if matches(one, text)]
    anywhere = all(matches(fill(one), text) for one in case.expect)
    found = len(case.expect) - len(missing)
    if wrong or (verdict == "idle" and case.alarm and not found):
        result = "misled"
    else:
        result = "named" if not missing else "partly" if found else "missed"
    return {"rate": result, "missing": missing, "wrong": wrong, "anywhere": anywhere,
            "screen": screen}


def judge(case):
    """Starts a case and asks both commands."""
    result = {"title": case.title, "family": case.family}
    with Lab() as lab:
        started = time.monotonic()
        target = case.start(lab)
        pids = [one if isinstance(one, int) else one.pid
                for one in (target if isinstance(target, (list, tuple)) else [target])]
        result["still"] = all([stands_still(pid) for pid in pids]) if case.still else None
        if result["still"] is False and not case.healthy:
            raise AssertionError("it does not hang")
        if not all(os.path.exists("/proc/%d/exe" % pid) and task_states(pid) and
                   "Z" not in task_states(pid).values() for pid in pids):
            raise AssertionError("it has ended")
        if not case.still:
            time.sleep(0.5)  # what only has to run
        result["started_s"] = round(time.monotonic() - started, 1)
        lab.read_facts()
        lab.facts["pid"] = pids[0]
        words = [str(pid) for pid in pids]
        status, text = tool("hang", "-f", "text", *words)
        found = re.search(r": (deadlock|stuck|blocked|busy|moving|idle)\b", text.split("\n\n")[0])
        verdict = found[1] if found else "none"
        json_status, json_text = tool("hang", "--json", *words)
        try:
            json_verdict = verdict if pids[1:] else json.loads(
                json_text[:json_text.rindex("}") + 1])["verdict"]
        except ValueError:
            json_verdict = "none"
        snap_status, snap_text = tool(*words)
        result.update(verdict=verdict, status=status, json_status=json_status,
                      json_verdict=json_verdict, snap_status=snap_status,
                      hang=rate(case, text, lab.facts, verdict),
                      snap=rate(case, snap_text, lab.facts, None),
                      alarm=status in (3, 4), snap_deadlock="DEADLOCK" in snap_text)
        result["alarm_right"] = bool(case.alarm) and (
            status == 3 if case.alarm == DEADLOCK else status in (3, 4))
        if case.healthy:
            result["false"] = (status in (3, 4) or json_status in (3, 4) or
                               result["snap_deadlock"])
        result.update(texts=[text, snap_text], facts=lab.facts)
    return result


def give_up(*_):
    raise TimeoutError("the case takes too long")


def name_of(case):
    return "%s / %s" % (case.family, case.title)


def child(name):
    """One case in a process of its own, which ends all that the case has started."""
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    signal.alarm(CASE_LIMIT_S)
    case, = [one for one in ALL if name_of(one) == name]
    try:
        result = judge(case)
    except Unavailable as reason:
        result = {"skipped": str(reason)}
    except (AssertionError, OSError, subprocess.SubprocessError, TimeoutError) as reason:
        result = {"failed": "%s: %s" % (type(reason).__name__, reason)}
    print(json.dumps(result))


def run(case, tries):
    results = []
    for _ in range(tries):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", name_of(case)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        try:
            results.append(json.loads(done.stdout.splitlines()[-1]))
        except (IndexError, ValueError):
            results.append({"failed": done.stderr[-800:] or "no result"})
    return results


class Load:
    """Busy loops beside the cases."""

    def __init__(self, count):
        words = ["nice", "-n", "2", "sh", "-c", "while :; do :; done"]
        # PR_SET_PDEATHSIG: none of them outlives the runner
        self.processes = [subprocess.Popen(words, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))
                          for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def line_of(case, result):
    if "skipped" in result or "failed" in result:
        word = "skipped" if "skipped" in result else "failed"
        return "%-10s %s / %s: %s" % (word, case.family, case.title,
                                      result[word].replace("\n", " ")[:300])
    if case.healthy:
        return "%-10s %s / %s: %s (%d), snap %d%s" % (
            "FALSE" if result["false"] else "right", case.family, case.title, result["verdict"],
            result["status"], result["snap_status"],
            "" if result["verdict"] == result["json_verdict"] else ", json " + result["json_verdict"])
    words = "%-6s %-6s %s / %s: %s (%d)" % (
        result["hang"]["rate"], result["snap"]["rate"], case.family, case.title, result["verdict"],
        result["status"])
    if case.alarm and not result["alarm_right"]:
        words += ", not the %s" % case.alarm
    for name in ("hang", "snap"):
        one = result[name]
        if one["missing"]:
            words += "; %s lacks %s%s" % (name, " ".join("/%s/" % text for text in one["missing"]),
                                          " (below the screen)" if one["anywhere"] else "")
        if one["wrong"]:
            words += "; %s WRONG %s" % (name, " ".join("/%s/" % text for text in one["wrong"]))
    return words


def worst(results, name):
    return max((result[name]["rate"] for result in results), key=RATES.index)


def table(found):
    """The sums of each family: named/partly/missed/misled. Of several tries the worst counts."""
    lines = ["%-10s %12s %12s %7s" % ("family", "hang", "snap", "alarms")]
    every = {}
    for case, results in found:
        good = [result for result in results if "hang" in result]
        if good and not case.healthy:
            for family in (case.family, "all"):
                row = every.setdefault(family, {"hang": dict.fromkeys(RATES, 0),
                                                "snap": dict.fromkeys(RATES, 0), "a": 0, "of": 0})
                for name in ("hang", "snap"):
                    row[name][worst(good, name)] += 1
                row["of"] += bool(case.alarm)
                row["a"] += bool(case.alarm) and all(one["alarm_right"] for one in good)
    for family, row in sorted(every.items(), key=lambda item: item[0] == "all"):
        lines.append("%-10s %12s %12s %7s" % (
            family, *("/".join(str(row[name][rate]) for rate in RATES)
                                for name in ("hang", "snap")), "%d/%d" % (row["a"], row["of"])))
    runs = [result for case, results in found if case.healthy for result in results
            if "hang" in result]
    wrong = [result for result in runs if result["false"]]
    lines.append("%d false alarms in %d healthy runs" % (len(wrong), len(runs)))
    return lines


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORD", action="append",
                        help="only cases with WORD in \"FAMILY / TITLE\"; may be repeated")
    parser.add_argument("--load", type=int, default=0, metavar="N",
                        help="busy loops beside the cases (default: 0)")
    parser.add_argument("--tries", type=int, default=1, metavar="N",
                        help="runs of each case (default: 1)")
    parser.add_argument("--jobs", type=int, default=3, metavar="N",
                        help="cases at the same time (default: 3)")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables of docs/verdicts.md")
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--show", action="store_true", help="print what both commands say")
    parser.add_argument("--list", action="store_true", help="print the cases and their truth")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def collect(options):
    """Runs what is selected; prints a line for each try."""
    selected = [case for case in ALL if not options.only or any(
        word.lower() in name_of(case).lower() for word in options.only)]
    found = {}
    with Load(options.load), concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(run, case, options.tries): case for case in selected}
        for job in concurrent.futures.as_completed(jobs):
            case = jobs[job]
            found[case] = job.result()
            for result in found[case]:
                print(line_of(case, result), flush=True)
                if options.show and "texts" in result:
                    print(re.sub(r"^", "    | ", "\n".join(result["texts"]), flags=re.M))
    return [(case, found[case]) for case in selected]


def main():
    options = parse()
    if options.child is not None:
        return child(options.child)
    if options.list:
        for case in ALL:
            print("%s / %s: %s" % (case.family, case.title, case.truth))
        return 0
    os.makedirs(cases.SCRATCH, exist_ok=True)
    found = collect(options)
    sums = table(found)
    print("\n" + "\n".join(sums))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([results for _, results in found], file, indent=1)
    if options.markdown:
        import markdown
        markdown.write(options.markdown, options, found, sums, line_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
