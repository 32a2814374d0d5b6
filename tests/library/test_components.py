"""Each component can be left out: the program is linked without its files, and lacks its commands only."""
# ctest: release-only
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests", "rules"))
import rules

BUILD, SOURCE = os.environ["BUILD"], os.environ["SOURCE"]
COMMANDS = {"SS_CRASH": ["run", "core"], "SS_TRACE": ["trace"], "SS_HEAP": ["heap"]}
LIMIT_S = 60


def sources():
    """The files of the program, each with its compiler command and object file."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            words = shlex.split(entry["command"])
            target = words[words.index("-o") + 1]
            if re.match(r"CMakeFiles/(ss_objects|ss_tool_objects|stacksnap)\.dir/", target):
                yield entry["file"], words, os.path.join(BUILD, target)


def libraries():
    with open(os.path.join(BUILD, "build.ninja"), encoding="utf-8") as file:
        text = file.read()
    found = re.search(r"^build stacksnap: .*\n(?:  .*\n)*?  LINK_LIBRARIES = (.*)\n", text, re.M).group(1)
    return [word for word in shlex.split(found) if word != "libstacksnap.a"]


def build_without(option, directory):
    """The path of the program without that component."""
    objects = []
    for path, words, target in sources():
        name = os.path.relpath(path, os.path.join(SOURCE, "src"))
        if re.match(rules.COMPONENTS[option], name):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if re.search(r"\b%s\b" % option, text):
            target = os.path.join(directory, name.replace("/", "_") + ".o")
            words = [word for word in words if word != "-D%s=1" % option]
            words[words.index("-o") + 1] = target
            subprocess.run([*words, "-D%s=0" % option], check=True, cwd=BUILD, timeout=LIMIT_S)
        objects.append(target)
    program = os.path.join(directory, "stacksnap")
    subprocess.run([os.environ["CC"], "-o", program, *objects, *libraries()], check=True, cwd=BUILD,
                   timeout=LIMIT_S)
    return program


class Components(unittest.TestCase):
    def test_without(self):
        for option, commands in COMMANDS.items():
            with self.subTest(option), tempfile.TemporaryDirectory() as directory:
                program = build_without(option, directory)
                shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=LIMIT_S,
                                       check=True).stdout
                for command in sum(COMMANDS.values(), []):
                    self.assertEqual(bool(re.search(r"^ +%s " % command, shown, re.M)), command not in commands,
                                     shown)
                with subprocess.Popen(["sleep", "1000"]) as target:
                    try:
                        seen = subprocess.run([program, str(target.pid)], capture_output=True, text=True,
                                              timeout=LIMIT_S, check=False)
                    finally:
                        target.kill()
                self.assertIn("waits for 16 min to pass", seen.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
