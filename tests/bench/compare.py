"""Compares the frames and names of stacksnap and eu-stack."""

import re

THREAD = re.compile(r"^TID (\d+):$")
FRAME = re.compile(r"^#\d+\s+0x([0-9a-f]+)(?:\s+-\s+\d+)?\s*(.*)$")
EU_LIMIT = 256  # eu-stack truncates stacks there


def parse_eu(text):
    """{tid: [(address, name)]}; module+0xoffset counts as no name."""
    threads, frames = {}, None
    for line in text.splitlines():
        if found := THREAD.match(line):
            frames = threads.setdefault(int(found.group(1)), [])
        elif frames is not None and (found := FRAME.match(line)):
            name = found.group(2).split("@")[0].strip()
            if re.search(r"\+0x[0-9a-f]+$", name):
                name = ""
            frames.append((int(found.group(1), 16), name))
    return threads


def compare_stack(ours, theirs):
    """(equal frames, frames that only stacksnap names, differences)"""
    same, better, different = 0, 0, []
    for index in range(min(EU_LIMIT, max(len(ours), len(theirs)))):
        mine = ours[index] if index < len(ours) else None
        other = theirs[index] if index < len(theirs) else None
        if mine == other:
            same += 1
        elif mine and (other is None or (mine[0] == other[0] and not other[1])):
            better += 1
        else:
            different.append([index, mine and mine[1], other and other[1]])
    return same, better, different


def compare(before, theirs, after, awake):
    """before and after: by stacksnap. Threads that run or have changed are ignored."""
    result = {"threads": len(before), "eu_threads": len(theirs), "moved": 0,
              "same": 0, "better": 0, "different": 0, "examples": []}
    for tid, stack in theirs.items():
        if tid in awake or tid not in before or before[tid] != after.get(tid):
            result["moved"] += 1
            continue
        same, better, different = compare_stack(before[tid], stack)
        result["same"] += same
        result["better"] += better
        result["different"] += len(different)
        result["examples"] += [[tid] + one for one in different][:3]
    result["examples"] = result["examples"][:10]
    return result
