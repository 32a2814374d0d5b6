"""The lines of share/ci/README.md show the stacks of a test that hangs, and the jobs beside it are valid."""
# ctest: long release-only

import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SOURCE"]
C = "#include <unistd.h>\nvoid hang_here(void) { pause(); }\nint main(void) { hang_here(); return 0; }\n"
PROJECTS = {
    "cmake": {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.21)\nproject(hang C)\nenable_testing()\n"
                                "set(CMAKE_BUILD_TYPE Debug)\nadd_executable(hang hang.c)\n"
                                "add_test(NAME hang COMMAND hang)\n", "hang.c": C},
    "meson": {"meson.build": "project('hang', 'c')\ntest('hang', executable('hang', 'hang.c'))\n", "hang.c": C},
    "go": {"go.mod": "module hang\n\ngo 1.19\n",
           "hang_test.go": 'package hang\nimport ("os"; "testing")\nfunc hang_here() { r, _, _ := os.Pipe(); '
                           'r.Read(make([]byte, 1)) }\nfunc TestHang(t *testing.T) { hang_here() }\n'},
    "cargo": {"Cargo.toml": '[package]\nname = "hang"\nversion = "0.1.0"\nedition = "2021"\n',
              "src/lib.rs": "#[inline(never)]\nfn hang_here() { loop { std::thread::park() } }\n"
                            "#[test]\nfn hang() { hang_here() }\n"},
    "stacksnap": {"Makefile": "check:\n\tcc -g -o hang hang.c && ./hang\n", "hang.c": C},
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Lines(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        os.mkdir(self.top + "/bin")
        os.symlink(os.environ["STACKSNAP"], self.top + "/bin/stacksnap")
        text = read(SOURCE + "/share/ci/README.md")
        self.lines = re.findall(r"^(?:CARGO\w*='[^']*' )?(?:\w+) .*$", "\n".join(re.findall(r"```sh\n(.*?)```", text, re.S)),
                                re.M)

    def run_line(self, tool, line):
        directory = os.path.join(self.top, tool + str(len(os.listdir(self.top))))
        for name, text in PROJECTS[tool].items():
            os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        line = re.sub(r"--timeout=\d+m", "--timeout=5", line)
        if tool == "cmake":
            line += " && cmake --build build && ctest --test-dir build --output-on-failure"
        if tool == "meson":
            line = "meson setup build && " + line + " --verbose"
        done = subprocess.run(["sh", "-c", line], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, timeout=300, check=False,
                              env=dict(os.environ, PATH=self.top + "/bin:" + os.environ["PATH"]))
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("hang_here", done.stdout, line)

    def test_lines(self):
        tried = set()
        for line in self.lines:
            tool = line.split()[0] if not line.startswith("CARGO") else "cargo"
            if "TEST_LAUNCHER" in line:
                text = subprocess.run(["cmake", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
                if tuple(map(int, re.search(r"(\d+)\.(\d+)", text).groups())) < (3, 29):
                    continue
            if tool != "pytest" and shutil.which(tool) or tool == "stacksnap":  # pytest: test_package.py
                with self.subTest(line):
                    self.run_line(tool, line)
                    tried.add(tool)
        self.assertLessEqual({"cmake", "go", "stacksnap"}, tried)
        self.assertEqual(len(self.lines), 7)

    def test_jobs(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no python3-yaml")
        github = yaml.safe_load(read(SOURCE + "/share/ci/github.yml"))
        gitlab = yaml.safe_load(read(SOURCE + "/share/ci/gitlab.yml"))
        self.assertEqual(github[True], ["push", "pull_request"])  # YAML 1.1 reads "on" as true
        commands = [step["run"] for step in github["jobs"]["test"]["steps"] if "run" in step]
        for line in commands + gitlab["test"]["before_script"] + gitlab["test"]["script"]:
            subprocess.run(["sh", "-n", "-c", line], check=True)
        # Both configure with a line of the README.
        for line in (commands[1], gitlab["test"]["script"][0]):
            self.assertIn(line.split(" && ")[0], self.lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
