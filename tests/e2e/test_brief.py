"""The format "brief": what is wrong in the first line, in at most 2,048 bytes."""
# ctest: quick

from harness import EndToEnd, main


class Brief(EndToEnd):
    def brief(self, *arguments, status=(0,)):
        data = self.run_tool(*arguments, status=status).stdout
        self.assertLessEqual(len(data), 2048, data)
        return data.decode()

    def test_deadlock(self):
        target = self.start("deadlock", "normal")
        for command, status in [((), (0,)), (("hang", "--for=200ms"), (3,))]:
            text = self.brief(*command, "-f", "brief", target.pid, status=status)
            lines = text.splitlines()
            self.assertRegex(lines[0], r"^deadlock, pid %d: deadlock: 2 threads in a deadlock, " % target.pid)
            self.assertTrue(lines[1].startswith("DEADLOCK: 2 threads"), text)
            self.assertIn(" waits for ", lines[2])
            self.assertNotIn("", lines)
            again = self.brief(*command, "-f", "brief", target.pid, status=status)
            self.assertEqual(again, text)

    def test_many_threads(self):
        target = self.start("threads", 200)  # of each of five kinds
        text = self.brief("-f", "brief", target.pid)
        self.assertRegex(text, r"\A\S+, pid %d: 1,001 threads idle\n" % target.pid)


if __name__ == "__main__":
    main()
