"""Parsers for formats of stacksnap report, with the rules of the tools that read them."""

import re


def parse_folded(text):
    """As flame graph tools: the last word is the count, the rest is split at ";"."""
    stacks = {}
    for line in text.splitlines():
        names, _, count = line.rpartition(" ")
        key = tuple(names.split(";"))
        stacks[key] = stacks.get(key, 0) + int(count)
    return stacks


def parse_perf(text):
    """As stackcollapse-perf: header "comm pid/tid time: period event:", frames
    "address symbol (module)", outermost last, until the empty line."""
    stacks, comm, frames, period = {}, None, [], 0
    for line in text.splitlines():
        header = re.match(r"^(\S.+?)\s+(\d+)/*(\d+)*\s+", line)
        frame = re.match(r"^\s*(\w+)\s*(.+) \((.*)\)", line)
        if line == "":
            key = (comm,) + tuple(reversed(frames))
            stacks.setdefault(key, []).append(period)
            comm, frames = None, []
        elif header and comm is None:
            event = re.search(r":\s*(\d+)*\s+(\S+):\s*$", line)
            assert event, line
            comm, period = header.group(1), int(event.group(1))
        elif frame:
            frames.append(re.sub(r"\+0x[\da-f]+$", "", frame.group(2)))
        else:
            raise AssertionError("unexpected line: " + line)
    assert comm is None, "the last event does not end"
    return stacks
