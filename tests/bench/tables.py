"""The table of results, and the goals."""

from statistics import median

# From the project's goals; times in nanoseconds, memory in KiB.
PAUSE_100_NS = 150_000
PAUSE_1000_NS = 600_000
FREEZE_RATIO = 1.5
MARIADB_RATIO = 20
METER_RATIO = 4
MEMORY_KB = 32 * 1024

COLUMNS = (("pause_ns", "pause"), ("freeze_ns", "freeze"), ("wall_ns", "wall"),
           ("cpu_ns", "CPU"), ("max_rss_kb", "memory"))


ENOUGH = 5  # quiet runs, if there are as many, replace all runs


def summary(runs):
    """
    {column: {median, min, max, count}} of the successful runs; only of quiet runs, during
    which nothing else ran on the machine, if they are enough.
    """
    good = [run for run in runs if not run["timed_out"] and "error" not in run]
    quiet = [run for run in good if run["quiet"]]
    if len(quiet) >= min(ENOUGH, len(good)):
        good = quiet
    result = {"quiet": len(quiet)}
    for key in [column for column, _ in COLUMNS] + ["running_ns", "threads"]:
        values = [run[key] for run in good if key in run]
        if values:
            result[key] = {"median": median(values), "min": min(values),
                           "max": max(values), "count": len(values)}
    return result


def value(case, tool, key, what="median"):
    return case["tools"].get(tool, {}).get(key, {}).get(what)


def milliseconds(nanoseconds):
    amount = nanoseconds / 1e6
    return f"{amount:.3f}" if amount < 10 else f"{amount:,.1f}"


def cell(case, tool, key):
    mine = value(case, tool, key)
    if mine is None:
        if key == "wall_ns" and tool in case["over_limit_s"]:
            return f"> {case['over_limit_s'][tool]} s"
        return "-"
    base = value(case, "stacksnap", key)
    if base is None and key == "freeze_ns":
        base = value(case, "  json", key)
    shown = f"{mine / 1024:.1f}" if key == "max_rss_kb" else milliseconds(mine)
    if key == "pause_ns":
        shown += f" ({milliseconds(value(case, tool, key, 'max'))})"
    return f"{shown} {mine / base:6.2f}x" if base else shown


def render_case(case):
    lines = [f"{case['title']}   [{case['threads']:,} threads]"]
    if case.get("noise"):
        noise = case["noise"]
        lines[0] += (f"   longest gap with no tool: {milliseconds(noise['median'])} ms "
                     f"(worst {milliseconds(noise['max'])})")
    for tool in case["order"]:
        cells = [f"{cell(case, tool, key):>26}" if key == "pause_ns" else
                 f"{cell(case, tool, key):>18}" for key, _ in COLUMNS]
        runs = value(case, tool, "wall_ns", "count") or 0
        quiet = case["tools"].get(tool, {}).get("quiet", 0)
        lines.append(f"  {tool:<15}" + "".join(cells) + f"{runs:>6}{quiet:>6}")
        if tool in case["errors"]:
            lines.append(f"    {case['errors'][tool]}")
    if names := case.get("names"):
        lines.append(f"  names: {names['threads']} threads (eu-stack "
                     f"{names['eu_threads']}), {names['same']:,} frames as eu-stack's, "
                     f"{names['better']} where only stacksnap has a name, "
                     f"{names['different']} different, {names['moved']} threads moved")
    return "\n".join(lines)


def render_table(cases):
    heading = f"  {'':<15}{'pause ms (worst)':>26}" + "".join(
        f"{name:>18}" for name in ("freeze ms", "wall ms", "CPU ms", "memory MiB"))
    notes = ("medians; Nx: as a multiple of stacksnap's. pause: the longest gap that a "
             "running thread\nof the target saw during a snapshot. freeze: first "
             "INTERRUPT to last DETACH. quiet: runs while nothing else ran on the\n"
             "machine; if they are enough, the others are ignored.")
    return "\n\n".join([notes + "\n\n" + heading + f"{'runs':>6}{'quiet':>6}"] +
                       [render_case(case) for case in cases])


def goal(text, measured, target, met):
    return {"goal": text, "measured": measured, "target": target,
            "met": None if measured is None else bool(met)}


def pause_goal(case, target):
    pause = value(case, "stacksnap", "pause_ns")
    if pause is None:
        return goal(f"pause, {case['title']}", None, milliseconds(target), False)
    best = value(case, "stacksnap", "pause_ns", "min")
    return goal(f"pause, {case['title']}",
                f"{milliseconds(pause)} ms (least {milliseconds(best)}, "
                f"noise {milliseconds(case['noise']['median'])})",
                f"<= {milliseconds(target)} ms", pause <= target)


def freeze_goal(case):
    """The floor at SCHED_FIFO, as stacksnap."""
    ours = value(case, "  json", "freeze_ns")
    floor = value(case, "floor at FIFO", "freeze_ns") or value(case, "floor", "freeze_ns")
    ratio = ours / floor if ours and floor else None
    return goal(f"freeze / floor, {case['title']}", ratio and f"{ratio:.2f}",
                f"<= {FREEZE_RATIO}", ratio and ratio <= FREEZE_RATIO)


def wall_goal(case, target):
    """Names only, because eu-stack shows neither lines nor inlined calls."""
    theirs = value(case, "eu-stack", "wall_ns")
    ratios = [theirs / ours for tool in ("  names only", "stacksnap")
              if theirs and (ours := value(case, tool, "wall_ns"))]
    if len(ratios) < 2:
        return goal(f"wall, eu-stack / stacksnap, {case['title']}", None,
                    f">= {target}x", False)
    return goal(f"wall, eu-stack / stacksnap, {case['title']}",
                f"{ratios[0]:.1f}x (with lines and inlined: {ratios[1]:.1f}x)",
                f">= {target}x", ratios[0] >= target)


def memory_goal(case):
    peak = value(case, "stacksnap", "max_rss_kb", "max")
    return goal(f"peak memory, {case['title']}", peak and f"{peak / 1024:.1f} MiB",
                f"< {MEMORY_KB // 1024} MiB", peak and peak < MEMORY_KB)


def names_goal(case):
    names = case["names"]
    good = names["threads"] == names["eu_threads"] and not names["different"]
    return goal(f"names as eu-stack, {case['title']}",
                f"{names['different']} of {names['same'] + names['different']} differ",
                "0", good)


def goals(cases):
    found = []
    for case in cases:
        blocked = case.get("blocked")
        if blocked in (100, 1000):
            found.append(pause_goal(case,
                                    PAUSE_100_NS if blocked == 100 else PAUSE_1000_NS))
        if blocked == 1000 or case["kind"] == "mariadb":
            found.append(wall_goal(case, METER_RATIO if blocked else MARIADB_RATIO))
            found.append(memory_goal(case))
        found.append(freeze_goal(case))
        if case.get("names"):
            found.append(names_goal(case))
    order = ("pause", "freeze", "wall", "peak", "names")
    return sorted(found, key=lambda one: order.index(one["goal"].split()[0].strip(",")))


def render_goals(found):
    lines = ["goals"]
    for one in found:
        verdict = {True: "MET", False: "NOT MET", None: "not measured"}[one["met"]]
        lines.append(f"  {one['goal']:<66} {one['measured'] or '-':<42} "
                     f"{one['target']:<12} {verdict}")
    return "\n".join(lines)
