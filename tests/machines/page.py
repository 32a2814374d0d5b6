"""docs/machines.md: the tables of what was found, without spaces in their rows: documents are short."""

import json
import os
import re

import kernels
import userlands
from checks import CAPABILITIES, SETTINGS

BEGIN, END = "<!-- these tables are written by ./dev machines -->", "<!-- end -->"


def load(place, kind, names):
    found = {}
    for name in names:
        path = os.path.join(place, "results", "%s-%s.json" % (kind, name))
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found[name] = json.load(file)
    return found


def table(rows):
    head, *rest = ["|" + "|".join(row) + "|" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *rest]


class Notes:
    """Longer texts of cells."""

    def __init__(self):
        self.texts = []

    def cell(self, result, text):
        if result == "ok":
            return "yes"
        word = "not tried" if result == "untried" else "no"
        if result == "failed":
            text = "failed: " + (re.findall(r"^\w*Error: .*$", text, re.M) or ["a time limit"])[0][:80]
        if text not in self.texts:
            self.texts.append(text)
        return "%s (%d)" % (word, self.texts.index(text) + 1)


def of_kernels(found, notes):
    def release(name):
        version = re.search(r" (\d+\.\d+\.\d+)\S* \(", found[name]["version"])
        return "%s<br>%s" % (name, version[1]) if version else name
    rows = [["kernel", *map(release, found)], ["date", *(one["date"] for one in found.values())]]
    for capability in CAPABILITIES:
        if not any(capability in one["rows"] for one in found.values()):
            continue
        rows.append([capability, *(notes.cell(*one["rows"][capability]) if capability in one["rows"] else ""
                                   for one in found.values())])
    return table(rows)


def of_settings(found, notes):
    rows = [["setting", "as it should be"]]
    for setting in SETTINGS:
        if setting in found:
            result, text = found[setting]
            rows.append([setting, notes.cell("untried" if result == "skipped" else result, text)])
    return table(rows)


def of_userlands(found, notes):
    rows = [["", *found], ["date", *(one["date"] for one in found.values())]]
    for program in userlands.PROGRAMS:
        row = [program]
        for one in found.values():
            version, lacking = one["rows"].get(program, ("", "not there"))
            number = re.search(r"\d+\.[\d.]*\d", version)
            row.append(" ".join(filter(None, [number and number[0], notes.cell(
                "skipped" if lacking else "ok", lacking or "")])))
        rows.append(row)
    return table(rows)


def write(path, place):
    notes = Notes()
    found = load(place, "kernel", kernels.KERNELS)
    lines = of_kernels(found, notes) + [""]
    if kernels.OF_SETTINGS in found:
        lines += of_settings(found[kernels.OF_SETTINGS]["rows"], notes) + [""]
    lines += of_userlands(load(place, "userland", userlands.SUITES), notes) + [""]
    lines += ["%d. %s" % (index + 1, text) for index, text in enumerate(notes.texts)]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:begin] + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + text[end:])
