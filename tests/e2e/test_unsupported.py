"""Languages whose functions are not known: one line says so, and JSON.

Debian packages: perl, ruby."""

import shutil

from harness import EndToEnd, main

PROGRAMS = {
    "Perl": ["perl", "-e", '$| = 1; print "ready\n"; sub work { sleep 1000 } work()'],
    "Ruby": ["ruby", "-e", '$stdout.sync = true; puts "ready"; def work; sleep 1000; end; work'],
}


class Unsupported(EndToEnd):
    def test_line(self):
        for language, command in PROGRAMS.items():
            if not shutil.which(command[0]):
                continue
            with self.subTest(language=language):
                process = self.start_command(command)
                problem = language + " is not supported: only those of the interpreter are shown"
                text = self.run_tool(process.pid, status=(0, 1)).stdout.decode()
                self.assertIn("\nmissing: functions of the program (" + problem, text)
                runtimes = self.snap(process.pid, status=(0, 1)).data["runtimes"]
                self.assertEqual([runtime["problem"] for runtime in runtimes], [problem])

    def test_none(self):
        """Programs of no such language."""
        process = self.start_command(["sh", "-c", "echo ready; exec sleep 1000"])
        self.assertEqual(self.snap(process.pid, status=(0, 1)).data["runtimes"], [])


if __name__ == "__main__":
    main()
