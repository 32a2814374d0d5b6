"""share/schemas/stacksnap.json describes all members of the JSON documents, and no others."""
# ctest: release-only

import copy
import json
import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]
STACKSNAP = os.environ["STACKSNAP"]
TARGETS = os.environ["TARGETS"]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

with open(SOURCE + "/share/schemas/stacksnap.json", encoding="utf-8") as opened:
    SCHEMA = json.load(opened)
WORDS = {"$ref", "anyOf", "type", "const", "pattern", "required", "properties", "items", "additionalProperties"}


def of_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def complaints(value, schema, path):
    """What is wrong with a value; unknown members are, too. The schema uses WORDS only."""
    assert set(schema) <= WORDS, schema
    if "$ref" in schema:
        yield from complaints(value, SCHEMA["$defs"][schema["$ref"].split("/")[-1]], path)
    if "anyOf" in schema:
        tried = [list(complaints(value, one, path)) for one in schema["anyOf"]]
        if all(tried):
            yield from tried[0]
    if "const" in schema and value != schema["const"]:
        yield "%s: %r" % (path, value)
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and not any(of_type(value, name) for name in types):
        yield "%s: %r is not %s" % (path, value, types)
        return
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield "%s: %r" % (path, value)
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from complaints(item, schema.get("items", {}), "%s[%d]" % (path, i))
    if isinstance(value, dict) and types:
        yield from ("%s: no %s" % (path, name) for name in schema.get("required", []) if name not in value)
        for name, member in value.items():
            if name in schema.get("properties", {}):
                yield from complaints(member, schema["properties"][name], path + "." + name)
            elif schema.get("additionalProperties", True) is True:
                yield "%s: %s is unknown" % (path, name)
            else:
                yield from complaints(member, schema["additionalProperties"], path + "." + name)


def check(document):
    name = document["schema"].split("/")[0].replace("stacksnap-", "").replace("-", "_")
    return list(complaints(document, SCHEMA["$defs"][name], name))


class Target:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        for line in self.process.stdout:
            if line == "ready\n":
                break
        return str(self.process.pid)

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def output(*arguments, statuses=(0, 1, 3, 4)):
    done = subprocess.run([STACKSNAP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False)
    if done.returncode not in statuses:
        raise AssertionError("%s: %d\n%s" % (arguments, done.returncode, done.stderr))
    return done.stdout


def document(command, *arguments):
    return json.loads(output(command, "--json", *arguments))


class Documents(unittest.TestCase):
    seen = set()

    def check(self, found):
        self.assertEqual(check(found), [])
        self.seen.add(found["schema"])

    def test_of_processes(self):
        with tempfile.TemporaryDirectory() as top, Target(TARGETS + "/deadlock", "globals") as pid, \
                Target(TARGETS + "/threads") as other:
            for each in (pid, other):
                self.check(document("snap", each))
                self.check(document("snap", "-i", "50ms", "-c", "3", each))
                self.check(document("hang", each))
                self.check(document("diff", "--after=1s", each))
                self.check(document("heap", each))
                self.check(document("modules", each))
                recording = "%s/%s.rec" % (top, each)
                output("record", "-d", "1s", "-o", recording, each)
                self.check(document("report", recording))
            self.check(document("report", "--diff", *("%s/%s.rec" % (top, each) for each in (pid, other))))
            output("-f", "recording", "-o", top + "/snap.rec", pid)
            self.check(document("report", top + "/snap.rec"))

    def test_of_crashes(self):
        with tempfile.TemporaryDirectory() as top:
            done = subprocess.run([STACKSNAP, "run", "--json", "-o", top + "/1.json", "--", "sh", "-c", "kill -SEGV $$"],
                                  stderr=subprocess.PIPE, timeout=60, check=False)
            self.assertTrue(os.path.exists(top + "/1.json"), done.stderr)
            with open(top + "/1.json", encoding="utf-8") as file:
                self.check(json.load(file))
            self.check(document("report", top))

    @classmethod
    def tearDownClass(cls):
        """All kinds but one, which needs probes, were there."""
        every = {SCHEMA["$defs"][one["$ref"].split("/")[-1]]["properties"]["schema"]["const"] for one in SCHEMA["oneOf"]}
        assert every - cls.seen <= {"stacksnap-growth/1"}, every - cls.seen

    def test_it_can_fail(self):
        with Target(TARGETS + "/deadlock", "globals") as pid:
            good = document("snap", pid)
        for change in (lambda d: d.update(more=1), lambda d: d.pop("process"),
                       lambda d: d["process"].update(pid="1"), lambda d: d["threads"][0].update(more=1),
                       lambda d: d["threads"][0]["frames"][0].update(pc="12"), lambda d: d.update(threads={})):
            bad = copy.deepcopy(good)
            change(bad)
            self.assertEqual(len(check(bad)), 1, check(bad))
        self.assertEqual(check(good), [])

    def test_the_schema_is_one(self):
        """The reference validator accepts it, where it is installed, and both agree."""
        code = ("import json, jsonschema, sys; schema = json.load(open(sys.argv[1])); "
                "jsonschema.Draft202012Validator.check_schema(schema); "
                "jsonschema.Draft202012Validator(schema).validate(json.load(sys.stdin))")
        if subprocess.run(["/usr/bin/python3", "-c", "import jsonschema"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("no python3-jsonschema")
        with Target(TARGETS + "/deadlock", "globals") as pid:
            text = output("--json", pid)
        for given, status in ((text, 0), (text.replace('"threads":[', '"threads":[7,'), 1)):
            done = subprocess.run(["/usr/bin/python3", "-c", code, SOURCE + "/share/schemas/stacksnap.json"], input=given,
                                  stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, status, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
