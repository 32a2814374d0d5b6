"""The tables of docs/verdicts.md."""

import os
import platform
import re
import shlex
import sys
import time

BEGIN, END = "<!-- load %d: begin -->", "<!-- load %d: end -->"


def machine():
    with open("/proc/meminfo", encoding="ascii") as file:
        kilobytes = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
    return "%d processors, %d GB, Linux %s" % (os.cpu_count(), round(kilobytes / 1e6),
                                               platform.release())


def misses(found, line_of):
    """One line for each case that one of the commands does not name."""
    for case, results in found:
        for result in results:
            if "hang" not in result:
                yield "- " + line_of(case, result)
                break
            wrong = result["false"] if case.healthy else (
                {result["hang"]["rate"], result["snap"]["rate"]} != {"named"} or
                bool(case.alarm) and not result["alarm_right"])
            if wrong:
                yield "- " + re.sub("  +", " ", line_of(case, result)).replace("|", "\\|")
                break


def section(options, found, sums, line_of):
    words = ["./dev", "bench", "--", "verdicts", *sys.argv[1:]]
    return "\n".join([
        BEGIN % options.load,
        "## At load %d" % options.load, "",
        "%s, %s, `%s`" % (time.strftime("%Y-%m-%d", time.gmtime()), machine(), shlex.join(words)),
        "", *sums, "",
        "Not named, or another verdict than is possible (hang's rate, snap's rate, case, verdict and "
        "exit status):", "", *misses(found, line_of), END % options.load]) + "\n"


def write(path, options, found, sums, line_of):
    """Replaces the section of this load, or appends it."""
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    new = section(options, found, sums, line_of)
    begin, end = BEGIN % options.load, END % options.load
    if begin in text:
        text = text[:text.index(begin)] + new + text[text.index(end) + len(end) + 1:]
    else:
        text = text.rstrip("\n") + "\n\n" + new
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.lstrip("\n"))
