"""The page of stacksnap report -f html in a headless Chromium: of 100,000 stacks, and of
recordings of Debian's python3 and MariaDB.

Debian packages: chromium, chromium-driver, mariadb-server."""
# ctest: real release-only long

import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from page import BrowserTest, PageTest, replace_data  # noqa: E402
from recordings import main  # noqa: E402
from mariadb import Connection, MariaDbServer  # noqa: E402


class Large(PageTest):
    """100,000 different stacks of up to 32 frames each. Counts are compared with sums made here,
    the size of the canvas with that of the window."""
    STACKS = 100_000

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.large = cls.path("large.html")

    def page(self):
        if os.path.exists(self.large):
            return self.large
        replace_data(super().page(), self.grow, self.large)
        return self.large

    def grow(self, data):
        parent, function, leaves = [0], [0], []
        functions = 3000
        for i in range(self.STACKS):
            at = 1 + i % 40 if i >= 40 else 0
            for depth in range(20 if i < 40 else 12):
                parent.append(len(parent) - at)
                function.append((i * 2654435761 // 64 + depth * 7919) % functions)
                at = len(parent) - 1
            leaves.append(at)
        ticks = self.STACKS // 100
        data["system_calls"], data["waits_for"], data["locks"] = ["futex"], [["mutex", "mutex"]], []
        data["functions"] = {"name": ["function_%d" % i for i in range(functions)],
                             "module": [0] * functions, "places": [], "runtimes": []}
        data["nodes"] = {"parent": parent, "function": function}
        data["frames"], data["calls"] = {}, {}
        data["recordings"][0]["ticks"] = [0] + [10_000] * (ticks - 1)
        data["recordings"][1]["ticks"] = []
        data["threads"] = [{"process": 0, "tid": i, "name": "t"} for i in range(100)]
        data["runs"] = {"thread": [0 if i % ticks or i == 0 else 1 for i in range(self.STACKS)],
                        "tick": [0] * self.STACKS, "count": [1] * self.STACKS, "stack": leaves,
                        "wait": [0, 1, 1, 1] * (self.STACKS // 4), "ready": [0] * self.STACKS,
                        "detail": [0, 1, 0, 0] * (self.STACKS // 4), "lock": [0] * self.STACKS,
                        "descriptor": [0] * self.STACKS,
                        "function": [1 + i % 1000 for i in range(self.STACKS)],
                        "state": "RSSS" * (self.STACKS // 4)}
        return data

    def test_is_readable(self):
        self.assertEqual(self.total(), self.STACKS)
        boxes = self.browser.run("return window.stacksnap.flame.rows"
                                 ".reduce((sum, row) => sum + row.node.length, 0)")
        self.assertLess(boxes, 60_000)  # of 2.4 million: what is wider than half a pixel
        self.drag(0.5, 0.6)
        self.assertAlmostEqual(self.total(), self.STACKS / 10, delta=self.STACKS / 200)
        self.browser.press("w", "c")
        self.assertEqual(self.total(), self.STACKS // 4)
        self.browser.press("c", "c", "i")
        self.assertEqual(self.total(), self.STACKS)
        self.browser.press("i")
        self.browser.press("r")  # no stack has a cycle
        self.assertEqual(self.total(), self.STACKS)
        self.browser.press("r", "2")
        self.assertGreater(len(self.rows("#calls")), 10)
        self.browser.press("3")
        self.assertEqual(self.browser.text("#functions-more"),
                         "and 2,500 more: search to find them")
        self.browser.press("d")
        self.assertEqual(self.total(), self.STACKS)
        self.browser.press("Escape", "5")
        self.assertEqual(self.browser.text("#waits-more"), "and 250 more")
        self.browser.press("1")
        self.browser.type("#search", "function_77")
        self.assertRegex(self.browser.text("#matched"), r"^\d")
        x, y, _ = self.browser.run(
            "const f = window.stacksnap.flame, l = f.rows[2], b = f.canvas.getBoundingClientRect();"
            "const i = l.width.indexOf(Math.max(...l.width));"
            "return [b.left + l.x[i] + l.width[i] / 2, b.top + f.top(2) + 9, l.width[i]]")
        self.browser.click_at(x, y)
        self.assertLess(self.browser.run("return window.stacksnap.tree.total["
                                         "window.stacksnap.flame.zoom]"), self.STACKS)
        self.browser.press("Escape", "Escape", "3")
        self.browser.type("#search", "function_77")
        self.assertEqual(len(self.rows("#functions")), 11)


PROGRAM = """
import hashlib, json, os, select, threading, time
end = time.time() + 2
def work():
    while time.time() < end:
        hashlib.sha256(b"x" * 100_000).digest()
        json.dumps([{"a": [1, {"b": [2] * 50}]}] * 50)
def idle():
    select.select([os.pipe()[0]], [], [], 2)
threads = [threading.Thread(target=f) for f in (work, work, idle, idle, idle, idle)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Python(PageTest):
    """Debian's python3: two threads compute, four are idle."""

    def page(self):
        path = self.path("python.html")
        if not os.path.exists(path):
            if not os.access("/usr/bin/python3", os.X_OK):
                raise unittest.SkipTest("/usr/bin/python3 is missing")
            recording = self.path("python.rec")
            self.run_tool("record", "-r", 199, "-o", recording, "--", "/usr/bin/python3", "-c",
                          PROGRAM, status=(0, 1))
            self.report("-f", "html", "-o", path, recording, status=(0, 1))
        return path

    def test_of_a_real_program(self):
        self.show(self.page(), "")
        self.assertTrue(self.pressed("show-cpu"))
        cpu = self.total()
        hidden = re.search(r"([\d,]+) idle \(([\d.]+) %\)", self.browser.text("#counts"))
        self.assertGreater(float(hidden.group(2)), 30)
        self.browser.press("c", "c")
        whole = self.total()
        self.assertGreater(whole, cpu + int(hidden.group(1).replace(",", "")) - 1)
        self.browser.press("c")
        # the totals of all views agree
        self.browser.press("2")
        self.assertGreater(len(self.rows("#calls")), 5)
        self.browser.press("3")
        names = [row[2] for row in self.rows("#functions")]
        self.browser.press("i")
        self.assertEqual(self.total(), cpu)
        self.assertEqual([row[2] for row in self.rows("#functions")], names)
        shares = [float(row[0].split()[0]) for row in self.rows("#functions")]
        self.assertEqual(shares, sorted(shares, reverse=True))
        # the first row of the inverted graph is the table
        self.browser.press("1")
        self.assertEqual(self.browser.run(
            "const f = window.stacksnap.flame; return f.tree.total[f.rows[1].node[0]]"),
            self.browser.run("return Math.max(...window.stacksnap.model.byFunction()[0]"
                             ".slice(0, window.stacksnap.model.functions))"))
        self.browser.press("i")
        deep = len(self.labels())
        self.browser.press("r")
        self.assertLessEqual(len(self.labels()), deep)
        self.assertEqual(self.total(), cpu)
        self.browser.press("r", "3")
        # callers of the hottest function, and a link to them
        name = self.browser.text("#sandwich-name")
        self.browser.run("window.stacksnap.link.write()")
        link = self.browser.run("return location.hash")
        self.show(self.page(), link)
        self.assertEqual(self.browser.text("#sandwich-name"), name)
        self.browser.click("#drop")
        self.assertNotIn(name, [row[2] for row in self.rows("#functions")])
        self.assertEqual(self.total(), cpu)


class RowLock(MariaDbServer, BrowserTest):
    """A query of MariaDB that waits for a row lock is no idle thread; connections without a
    query are."""

    def test_row_lock(self):
        server = self.start_server()
        first, second, *others = [Connection(self.path) for _ in range(6)]
        for connection in (first, second, *others):
            self.addCleanup(connection.socket.close)
        for statement in ("create database d", "use d", "create table t (a int primary key, b int)",
                          "insert into t values (1, 0)", "begin", "update t set b = 1"):
            first.query(statement)
            first.done()
        second.query("use d")
        second.done()
        second.query("update t set b = 2")  # waits for the lock of the first
        with tempfile.TemporaryDirectory() as directory:
            recording, page = directory + "/rows.rec", directory + "/rows.html"
            self.run_tool("record", "-r", 49, "-d", "1s", "-o", recording, server.pid,
                          status=(0, 1))
            self.report("-f", "html", "-o", page, recording, status=(0, 1))
            self.browser.open("file://" + page + "#show=all")
            self.browser.wait("return window.stacksnap && 1", "the page")
            threads = self.browser.run("""
                const m = window.stacksnap.model, tree = m.recorded, threads = {};
                for (let i = 0; i < m.runClass.length; i++) {
                  const node = m.lines.nodeOf[m.runStack[i]];
                  const names = tree.path(node).map((n) => m.names[tree.func[n]]).join();
                  const kind = names.includes("ha_update_row") || names.includes("ha_rnd_next")
                    || names.includes("mysql_update") ? "update"
                    : names.includes("vio_read") ? "connection" : "";
                  threads[kind] = threads[kind] || [0, 0, 0];
                  threads[kind][m.runClass[i]] += m.runCount[i];
                }
                return threads;""")
            self.browser.run("window.stacksnap.show(1); window.stacksnap.selectView('waits')")
            self.browser.settle()
            waits = self.browser.run("return [...document.querySelectorAll('#waits tbody tr')]"
                                     ".map(row => [...row.cells].map(cell => cell.textContent))")
        self.assertRegex(str([row[2:4] for row in waits]),
                         r"'application lock', '[^']*row lock", waits)
        self.assertGreater(threads["update"][1], 10, threads)
        self.assertEqual(threads["update"][2], 0, threads)
        self.assertGreater(threads["connection"][2], 50, threads)
        self.assertEqual(threads["connection"][1], 0, threads)


if __name__ == "__main__":
    main()
