"""The wait-for graph on the page of a snapshot, in a headless Chromium; the processes are the
target programs for locks.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from page import BrowserTest  # noqa: E402
from recordings import Description, main  # noqa: E402

# Each box: name, whether it is part of a cycle, position, label.
BOXES = """
return [...document.querySelectorAll("#graph g")].map(g => {
  const box = g.querySelector("rect").getBoundingClientRect();
  return [g.querySelector(".name").textContent, g.classList.contains("cycle"),
          Math.round(box.left), Math.round(box.top), g.getAttribute("aria-description")];
});
"""
ARROWS = "return [...document.querySelectorAll('#graph path.arrow')].map(p => p.getAttribute('class'))"
# The labels below the overview.
AXIS = """
const timeline = window.stacksnap.timeline, texts = [];
const context = timeline.overview.getContext("2d"), write = context.fillText;
context.fillText = (text, x, y) => { if (y > 20) texts.push(text); };
timeline.paintOverview();
context.fillText = write;
return texts;
"""


class Waits(BrowserTest):
    def tearDown(self):
        self.assertEqual(self.browser.log(), [], "there are messages on the console")

    def show(self, name, *arguments):
        target = self.start(name, *arguments)
        recording, page = self.path(name + ".ss"), self.path(name + ".html")
        for path in (recording, page):
            if os.path.exists(path):
                os.unlink(path)
        self.run_tool("--mode=stop", "-f", "recording", "-o", recording, target.pid)
        self.report("-f", "html", "-o", page, recording)
        self.open(page)

    def open(self, page):
        self.browser.open("file://" + page)
        self.browser.wait("return window.stacksnap && 1", "the page")
        self.browser.settle()

    def boxes(self):
        return {words.rsplit(" ", 1)[0]: (cycle, x, y, label)
                for words, cycle, x, y, label in self.browser.run(BOXES)}

    def view(self):
        return self.browser.text("[role=tab][aria-selected=true]")

    def test_cycle(self):
        self.show("deadlock", "normal", 3, 1)
        self.assertEqual(self.view(), "Waits")
        boxes = self.boxes()
        self.assertEqual(sorted(boxes), ["behind-0"] + ["locker-%d" % i for i in range(3)])
        lockers = [boxes["locker-%d" % i] for i in range(3)]
        self.assertTrue(all(cycle for cycle, _, _, _ in lockers))
        self.assertEqual(len({y for _, _, y, _ in lockers}), 1)  # side by side
        self.assertEqual(len({x for _, x, _, _ in lockers}), 3)
        self.assertIn("waits for mutex mutexes+0x28", boxes["locker-0"][3])
        self.assertFalse(boxes["behind-0"][0])
        self.assertGreater(boxes["behind-0"][2], boxes["locker-0"][2])  # below
        self.assertEqual(sorted(self.browser.run(ARROWS)), ["arrow"] + 3 * ["arrow cycle"])

    def test_chains(self):
        self.show("lockwaits")
        boxes = self.boxes()
        self.assertEqual(sorted(name for name in boxes if boxes[name][0]), ["join-a", "join-b"])
        for below, above in (("wants-mutex", "reads-pipe"), ("wants-behind", "wants-mutex"),
                             ("wants-write", "reads-pipe"), ("writes-stream", "locks-stream")):
            self.assertGreater(boxes[below][2], boxes[above][2], (below, above))
        self.assertEqual(len(self.browser.run(ARROWS)), 10)
        # a click on a box shows the stack of its thread
        self.browser.click("#graph g.cycle")
        self.assertEqual(self.view(), "Flame graph")
        self.assertEqual(self.browser.run("return window.stacksnap.tree.total[0]"), 1)
        self.browser.press("5")
        self.assertEqual(self.view(), "Waits")

    def test_many_threads_with_one_wait(self):
        self.show("deadlock", "normal", 2, 5)
        self.assertIn("5", self.boxes())  # "5 threads"
        self.assertEqual(len(self.browser.run(ARROWS)), 3)

    def test_nothing_waits(self):
        self.show("threads", 2, 3)
        self.assertEqual(self.view(), "Flame graph")
        self.assertFalse(self.browser.run(
            "return document.getElementById('tab-waits').checkVisibility()"))
        self.browser.press("5")
        self.assertEqual(self.view(), "Flame graph")

    def test_snapshot_has_no_time(self):
        """There is no time window to select, and no time axis."""
        self.show("threads", 2, 3)
        self.assertEqual(self.browser.run(AXIS), ["snapshot"])
        self.assertRegex(self.browser.text("#summary"), r"^snapshot, 20\d\d-")
        self.assertFalse(self.browser.run(
            "return document.getElementById('from').checkVisibility()"))
        samples = self.browser.run("return window.stacksnap.tree.total[0]")
        self.browser.run("document.getElementById('time').focus()")
        self.browser.press(*["Left"] * 5, modifier="Shift")
        self.assertEqual(self.browser.run("return window.stacksnap.model.window"), None)
        self.assertEqual(self.browser.run("return window.stacksnap.tree.total[0]"), samples)

    def test_short_times(self):
        """No label of the axis is repeated."""
        d = Description(period=0)
        thread = d.thread(d.process(), 100, "shop")
        stack = d.stack((None, 0x10))
        for _ in range(4):
            d.tick(step=1000)
            d.sample(thread, stack)
        page = self.path("short.html")
        self.report("-f", "html", "-o", page, d.write(self.path("short.ss")))
        self.open(page)
        self.assertEqual(self.browser.run(AXIS), [
            "0 s", *("0.%06d s" % i for i in range(1, 5))])


if __name__ == "__main__":
    main()
