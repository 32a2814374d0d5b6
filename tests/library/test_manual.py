"""The manual pages and the program agree: stacksnap(3) has the prototype of every public
function as the header declares it, and the page of each command has exactly the options
that `stacksnap COMMAND --help` lists. Examples use no others."""

import glob
import os
import re
import shlex
import subprocess
import unittest

SOURCE = os.environ["SOURCE"]
STACKSNAP = os.environ["STACKSNAP"]
PAGES = {(re.search(r"-(\w+)\.1$", page) or ["", "snap"])[1]: os.path.basename(page)
         for page in glob.glob(os.path.join(SOURCE, "man/stacksnap*.1"))}
# Every command has these; stacksnap(1) documents them once.
COMMON = {"--help", "--version"}


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def plain(text):
    """One line of roff without escapes for fonts and characters."""
    text = re.sub(r"\\f(?:\[\w*\]|\(\w\w|\w)|\\&|\\,|\\/", "", text)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"')


def tags(page):
    """The headings of tagged paragraphs, without their macros."""
    lines = read("man/" + page).splitlines()
    for before, line in zip(lines, lines[1:]):
        if before in (".TP", ".TQ"):
            yield plain(re.sub(r"^\.[BI]R?I? ", "", line)).replace('"', "")


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*|(?<![\w-])-[A-Za-z?](?![\w-])", text))


def options_of_help(command):
    done = subprocess.run([STACKSNAP, command, "--help"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError("%s --help: %d\n%s" % (command, done.returncode, done.stdout))
    lines = re.findall(r"^ {1,6}(-\S.*?)(?:  |$)", done.stdout, re.M)
    return set().union(*(options(line) for line in lines))


def headers():
    return "".join(read("include/" + name) for name in
                   ("stacksnap.h", "stacksnap/record.h", "stacksnap/trace.h"))


def command_lines(text):
    """The command and options of each call of stacksnap in a text."""
    for part in re.split(r"\||&&|;|\$\(|[`'\"]|\n(?! )", text):
        call = re.search(r"(?:^|[\s/])stacksnap((?: +(?!#)\S+)+)", part)
        if call:
            words = call.group(1).split(" -- ")[0].split()
            yield words[0] if words[0] in PAGES else "snap", {
                word.split("=")[0] for word in words
                if re.fullmatch(r"--[a-z][a-z-]*(=.*)?|-[A-Za-z]", word)}


def prototypes_of_header():
    text = re.sub(r"/\*.*?\*/", "", headers(), flags=re.S)
    return {squeeze(prototype) for prototype in re.findall(r"^SS_API ([^;]*;)", text, re.M)}


def prototypes_of_page():
    words = []
    for line in read("man/stacksnap.3").split(".SH DESCRIPTION")[0].splitlines():
        match = re.match(r"\.B[IR]? (.*)", line)
        if match and not match.group(1).startswith("#"):
            words.append("".join(shlex.split(plain(match.group(1)))))
    text = " ".join(words)
    return {squeeze(prototype) for prototype in re.findall(r"[^;]*\bss_\w+\([^;]*;", text)}


def squeeze(prototype):
    prototype = re.sub(r"\s+", " ", prototype).strip()
    return re.sub(r"(?<=[*(]) | (?=[),\[])", "", prototype)


class Library(unittest.TestCase):
    maxDiff = None

    def test_prototypes(self):
        """Each has a prototype in SYNOPSIS, and nothing else has."""
        self.assertEqual(sorted(prototypes_of_page()), sorted(prototypes_of_header()))

    def test_descriptions(self):
        """Each function is described by name below DESCRIPTION, or stands in a list of
        accessors there."""
        description = read("man/stacksnap.3").split(".SH DESCRIPTION")[1]
        for prototype in prototypes_of_header():
            name = re.search(r"\b(ss_\w+)\(", prototype).group(1)
            with self.subTest(function=name):
                self.assertRegex(description, r"\b%s\b" % name)


class Commands(unittest.TestCase):
    def test_options(self):
        for command, page in PAGES.items():
            with self.subTest(command=command):
                documented = set().union(*(options(tag) for tag in tags(page)
                                           if re.match(r"-", tag)))
                listed = options_of_help(command)
                self.assertGreater(len(listed), 2)
                self.assertEqual(documented - COMMON - {"-h", "-V"},
                                 listed - COMMON - {"-h", "-V"})

    def test_command_lines(self):
        """Documents and pages use only options that a command has."""
        known = {command: options_of_help(command) | COMMON | {"-h", "-V"} for command in PAGES}
        found = 0
        for path in glob.glob("*.md", root_dir=SOURCE) + glob.glob("docs/*.md", root_dir=SOURCE) + \
                ["man/" + page for page in PAGES.values()]:
            for command, used in command_lines(plain(read(path))):
                with self.subTest(path=path, command=command):
                    self.assertLessEqual(used, known[command])
                found += len(used)
        self.assertGreater(found, 100)

    def test_every_command_has_a_page(self):
        done = subprocess.run([STACKSNAP, "--help"], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=60)
        section = re.search(r"^Commands[^\n]*:\n((?: +\S.*\n)+)", done.stdout, re.M)
        self.assertIsNotNone(section, done.stdout)
        commands = set(re.findall(r"^ {1,4}(?:stacksnap )?([a-z]+) ", section.group(1), re.M))
        self.assertEqual(commands, set(PAGES) | {"help"})


class Recording(unittest.TestCase):
    # Tags in stacksnap-recording(5), and the enumerations whose values they list.
    ENUMERATIONS = {"kind": "ss_wait_kind", "lock": "ss_lock_type",
                    "access and owner_access": "ss_access",
                    "owner_unknown": "ss_owner_unknown", "range": "ss_file_range",
                    "child_scope": "ss_child_scope", "ipc": "ss_ipc_operation",
                    "kind of a descriptor": "ss_fd_kind"}

    def test_values(self):
        """Each value of the enumerations of a wait is listed with its name."""
        header = re.sub(r"/\*.*?\*/", "", read("include/stacksnap.h"), flags=re.S)
        page = read("man/stacksnap-recording.5")
        for tag, name in self.ENUMERATIONS.items():
            with self.subTest(enumeration=name):
                body = re.search(r"enum %s \{(.*?)\};" % name, header, re.S).group(1)
                members = re.findall(r"SS_[A-Z]+?_(\w+)", body)
                text = re.search(r"^\.B %s\n((?:[^.].*\n)+)" % tag, page, re.M).group(1)
                self.assertEqual(re.findall(r"(\d+) ([\w-]+)", plain(text)),
                                 [(str(i), member.lower().replace("_", "-"))
                                  for i, member in enumerate(members)])


class Format(unittest.TestCase):
    def test_pages_are_complete(self):
        """Each page has a name, a synopsis or description, and refers to existing pages."""
        pages = {os.path.basename(path): path for path in
                 glob.glob(os.path.join(SOURCE, "man/*.[135]"))}
        for name, path in pages.items():
            with self.subTest(page=name):
                text = plain(read(path))
                self.assertIn(".SH NAME", text)
                for other, section in re.findall(r"\b(stacksnap(?:-[a-z-]+)?) ?\((\d)\)", text):
                    self.assertIn("%s.%s" % (other, section), pages)


if __name__ == "__main__":
    unittest.main(verbosity=2)
