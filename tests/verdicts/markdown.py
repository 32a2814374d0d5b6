"""The tables of docs/verdicts.md, and the list of what is not named, in a text file beside it."""

import os
import platform
import re
import shlex
import sys
import time

BEGIN, END = "<!--load-%d-->\n", "<!--end-of-load-%d-->\n"


def machine():
    with open("/proc/meminfo", encoding="ascii") as file:
        kilobytes = int(re.search(r"MemTotal:\s+(\d+)", file.read())[1])
    return "%d processors, %d GB, Linux %s, load average %.0f" % (
        os.cpu_count(), round(kilobytes / 1e6), platform.release(), os.getloadavg()[0])


def is_right(case, result):
    if "hang" not in result:
        return False
    if case.healthy:
        return not result["false"]
    return ({result["hang"]["rate"], result["snap"]["rate"]} == {"named"} and
            (result["alarm_right"] or not case.alarm))


def misses(found, line_of):
    """The first try of each case that is not as it should be."""
    for case, results in found:
        wrong = [result for result in results if not is_right(case, result)]
        if wrong:
            yield re.sub("  +", " ", line_of(case, wrong[0]))


def write(path, options, found, sums, line_of):
    """Replaces the section of this load, or appends it. With load it is one line: documents are short."""
    made = "%s, %s: `%s`" % (time.strftime("%Y-%m-%d", time.gmtime()), machine(),
                             shlex.join(["./dev", "bench", "--", "verdicts", *sys.argv[1:]]))
    stem = "%s-load-%d.txt" % (os.path.splitext(path)[0], options.load)
    with open(stem, "w", encoding="utf-8") as file:
        file.write("%s\n\n%s\n\nhang's rate, snap's rate, case: hang's verdict and exit status, what is "
                   "lacking\n\n%s\n" % (made, "\n".join(sums), "\n".join(misses(found, line_of))))
    link = os.path.basename(stem)
    if options.load:
        new = "Load %d: %s; %s: [more](%s)" % (options.load, " ".join(sums[-2].split()), sums[-1], link)
    else:
        new = "%s. [Not named](%s)\n\n```\n%s\n```" % (made, link, "\n".join(sums))
    begin, end = BEGIN % options.load, END % options.load
    new = begin + new + "\n" + end
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    if begin in text:
        text = text[:text.index(begin)] + new + text[text.index(end) + len(end):]
    else:
        text = text.rstrip("\n") + "\n\n" + new
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.lstrip("\n"))
