"""The page of stacksnap report -f html: its rows of threads, the stack chart, and pictures.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import base64
import os
import struct
import sys
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from page import BOX, PIXEL, PageTest  # noqa: E402
from recordings import Description, main  # noqa: E402

LANE = 16


class Timeline(PageTest):
    def page(self):
        """A pool of twelve threads, of which one works at each tick, and two other threads."""
        path = self.path("pool.html")
        if not os.path.exists(path):
            d = Description()
            process = d.process()
            module = d.module(process, self.library, self.build_id)
            names = ["main", "io"] + ["worker-%d" % i for i in range(12)]
            threads = [d.thread(process, 100 + i, name) for i, name in enumerate(names)]
            idle = self.stack_of(d, module, "wait_for_work", "start")
            busy = self.stack_of(d, module, "hash", "parse", "serve", "start")
            for tick in range(120):
                d.tick()
                for i, thread in enumerate(threads):
                    works = i - 2 == tick // 10
                    d.sample(thread, busy if works else idle, "R" if works else "S",
                             call=-1 if works else 202, argument=0x1000)
            self.report("-f", "html", "-o", path, d.write(self.path("pool.ss")))
        return path

    def lanes(self):
        return self.browser.run("const { timeline, model } = window.stacksnap;"
                                "return timeline.lanes.map(({ key, name, threads }) =>"
                                "key ? `${name} ${threads.length}` : model.threads[threads[0]].name)")

    def lane_at(self, name, x):
        left, top, _, _ = self.browser.run(BOX, "#rows")
        return left + x, top + self.lanes().index(name) * LANE + LANE // 2

    def test_threads_of_one_name_are_a_row(self):
        self.assertEqual(self.lanes(), ["worker-* 12", "main", "io"])
        self.browser.click_at(*self.lane_at("worker-* 12", 40))
        self.assertEqual(self.total(), 12 * 120)
        self.assertEqual(self.chosen(), "12 threads worker-*")
        self.browser.click_at(*self.lane_at("worker-* 12", 40))
        self.assertEqual(self.total(), 14 * 120)
        self.browser.click_at(*self.lane_at("worker-* 12", 6))  # its sign
        self.assertEqual(self.lanes(), ["worker-* 12"] + ["worker-%d" % i for i in range(12)] +
                         ["main", "io"])
        self.browser.click_at(*self.lane_at("worker-1", 40))
        self.assertEqual(self.total(), 120)
        self.browser.mouse(("move", *self.lane_at("worker-2", 40)), ("down",), ("up",),
                           modifier="Control")
        self.assertEqual(self.total(), 240)
        self.browser.click_at(*self.lane_at("worker-* 12", 6))
        self.assertEqual(len(self.lanes()), 3)

    def test_a_closed_row_shows_all_its_threads(self):
        """One of twelve runs at each time: a twelfth of the row has the colour of that."""
        left, top, width, _ = self.browser.run(BOX, "#rows")
        label = self.browser.run("return window.stacksnap.timeline.label")
        x = left + label + (width - label) / 2
        low, high = [self.browser.run(PIXEL, "#rows-canvas", x, top + y) for y in (14, 5)]
        self.assertNotEqual(low, high)

    def test_keys(self):
        self.browser.run("document.getElementById('time').focus()")
        self.browser.press("Down")
        self.assertEqual(self.chosen(), "12 threads worker-*")
        self.browser.press("Enter", "Down")
        self.assertEqual(self.chosen(), "worker-0 102")
        self.browser.press(*["Down"] * 12)
        self.assertEqual(self.chosen(), "main 100")
        at = self.browser.run("const { timeline } = window.stacksnap;"
                              "return timeline.rows.scrollTop / 16 + timeline.laneHeight / 16")
        self.assertGreaterEqual(at, 14)  # the row is visible
        self.browser.press(*["Up"] * 14)
        self.assertEqual(self.total(), 14 * 120)

    def test_search(self):
        self.browser.type("#find", "io")
        self.assertEqual(self.lanes(), ["io"])
        self.assertEqual(self.total(), 14 * 120)  # what is counted stays
        self.assertEqual(self.browser.run("return document.getElementById('thread').length"), 3)
        self.browser.press("Enter")
        self.assertEqual(self.total(), 120)
        self.browser.press("Escape")
        self.assertEqual(len(self.lanes()), 3)
        self.browser.type("#find", "/worker-1[01]?/")
        self.assertEqual(self.lanes(), ["worker-1", "worker-10", "worker-11"])
        self.browser.press("Enter")
        self.assertEqual(self.total(), 3 * 120)
        self.browser.type("#find", "nothing")
        self.assertEqual(self.lanes(), [])
        self.browser.press("Enter")
        self.assertEqual(self.total(), 3 * 120)

    def test_height(self):
        """The line below the rows is dragged, or moved by keys."""
        height = "return document.getElementById('rows-canvas').getBoundingClientRect().height"
        self.assertTrue(self.browser.run("return document.getElementById('divider').hidden"))
        self.browser.click_at(*self.lane_at("worker-* 12", 6))
        before = self.browser.run(height)
        self.assertLess(before, 15 * LANE)
        x, y, width, high = self.browser.run(BOX, "#divider")
        self.browser.mouse(("move", x + width / 2, y + high / 2), ("down",),
                           ("move", x + width / 2, y + high / 2 + 64), ("up",))
        self.assertAlmostEqual(self.browser.run(height), before + 64, delta=6)
        self.browser.run("document.getElementById('divider').focus()")
        self.browser.press("Up")
        self.assertAlmostEqual(self.browser.run(height), before + 48, delta=6)
        self.browser.press(*["Down"] * 9)
        self.assertEqual(self.browser.run(height), 15 * LANE)  # there are no more rows
        self.browser.press(*["Up"] * 20)
        self.assertEqual(self.browser.run(height), 2 * LANE)

    def chart(self):
        """Each row of the stack chart: [name, begin, width] in percent of the time."""
        return self.browser.run(
            "const c = window.stacksnap.chart; return c.rows.slice(1).map((row) => row.node.map("
            "(n, i) => [c.label(n), ...[row.x[i], row.width[i]].map((x) => Math.round(100 * x / c.width))]))")

    def test_stack_chart(self):
        self.browser.press("6")
        self.assertEqual(self.browser.text("#chart-thread"),
                         "worker-0 102: the first of the selected threads")
        self.browser.type("#find", "worker-3")
        self.browser.press("Enter")
        self.assertEqual(self.browser.text("#chart-thread"), "worker-3 105")
        self.assertEqual(self.chart(), [
            [["shop_start", 0, 100]],
            [["shop_wait_for_work", 0, 25], ["shop_serve", 25, 8], ["shop_wait_for_work", 33, 67]],
            [["shop_parse", 25, 8]], [["shop_hash", 25, 8]]])
        left, top, width, _ = self.browser.run(BOX, "#chart-canvas")
        at = left + width * 0.29, top + 19 * 3 + 9
        self.browser.mouse(("move", *at))
        self.assertIn("shop_parse", self.browser.text("#tip"))
        self.assertIn("0.300 s to 0.400 s", self.browser.text("#tip"))
        self.browser.click_at(*at)
        self.assertIn("shop_parse", self.detail())
        self.browser.run("document.getElementById('chart').focus()")
        self.browser.press("Up")
        self.assertIn("shop_serve", self.detail())
        self.browser.press("Left")
        self.assertIn("shop_wait_for_work", self.detail())
        self.browser.press("Right", "Enter")  # its time
        self.assertEqual(self.total(), 10)
        self.assertEqual(self.chart()[1], [["shop_serve", 0, 100]])
        self.browser.press("Escape", "Escape", "c")  # only what runs
        self.assertEqual(self.chart()[1], [["shop_serve", 25, 8]])
        self.browser.press("x")
        self.assertEqual(self.chart(), [])

    def test_compare(self):
        """A function that only the second recording has is red, what became rare is blue."""
        recordings = []
        for i, shares in enumerate(((6, 4, 0), (2, 4, 4))):
            d = Description(host="host%d" % i)
            process = d.process()
            module = d.module(process, self.library, self.build_id)
            thread = d.thread(process, 100, "main")
            stacks = [self.stack_of(d, module, name, "start") for name in ("hash", "parse", "step")]
            for stack in [stack for stack, n in zip(stacks, shares) for _ in range(n)]:
                d.tick()
                d.sample(thread, stack, "R")
            recordings.append(d.write(self.path("compare%d.ss" % i)))
        path = self.path("compare.html")
        self.report("-f", "html", "-o", path, *recordings)
        self.show(path)
        self.browser.click("#compare")
        for invert in (False, True):
            colors = {}
            for name in ("hash", "parse", "step"):
                x, y, width = self.frame("shop_" + name)
                self.browser.mouse(("move", x, y))
                tip = self.browser.text("#tip")
                self.browser.mouse(("move", 5, 5))
                color = self.browser.run(PIXEL, "#flame-canvas", x + width / 2 - 6, y)
                colors[name] = color[0] - color[2]  # red less blue
                if name == "hash":
                    self.assertIn("first 60.0 %, second 20.0 %", tip)
            self.assertLess(colors["hash"], -10)
            self.assertEqual(colors["parse"], 0)
            self.assertGreater(colors["step"], 10)
            if not invert:
                self.browser.press("i")
        self.assertIn("compare=1", self.link())
        self.show(path, self.link())
        self.assertTrue(self.pressed("compare"))
        self.assertEqual(self.total(), 20)

    def save(self, kind):
        """Returns the file that the button saves, as a data: URL, and its name."""
        self.browser.run("const create = URL.createObjectURL; window.saved = null;"
                         "URL.createObjectURL = (blob) => { const r = new FileReader();"
                         "r.onload = () => { window.saved = r.result; }; r.readAsDataURL(blob);"
                         "URL.createObjectURL = create; return create.call(URL, blob); };"
                         "HTMLAnchorElement.prototype.click = function () {"
                         "window.savedName = this.download; };")
        self.browser.click("#save-" + kind)
        url = self.browser.wait("return window.saved", "the picture")
        head, _, data = url.partition(",")
        return head, base64.b64decode(data), self.browser.run("return window.savedName")

    def texts(self, svg):
        return ["".join(part.itertext()) for part in ElementTree.fromstring(svg).iter(
            "{http://www.w3.org/2000/svg}text")]

    def test_pictures(self):
        kind, svg, name = self.save("svg")
        self.assertEqual((kind, name), ("data:image/svg+xml;base64", "shop-pid-100-flame.svg"))
        self.assertEqual(self.texts(svg), ["all", "shop_start", "shop_serve", "shop_wait_for_work",
                                           "shop_parse", "shop_hash"])
        self.assertNotIn(b"style", svg)
        kind, png, name = self.save("png")
        self.assertEqual((kind, name), ("data:image/png;base64", "shop-pid-100-flame.png"))
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        width = self.browser.run("return window.stacksnap.flame.width")
        self.assertEqual(struct.unpack(">II", png[16:24]), (width, 5 * 19))
        self.browser.press("6")
        self.assertIn("shop_parse", self.texts(self.save("svg")[1]))
        self.browser.press("2")  # a table is no picture
        self.assertTrue(self.browser.run("return document.getElementById('save').hidden"))

    def test_picture_of_the_wait_graph(self):
        d = Description()
        process = d.process()
        stack = d.stack((None, 0x10))
        threads = [d.thread(process, 100 + i, name) for i, name in enumerate(("a<b>\1", "two"))]
        d.tick()
        for thread in threads:
            d.sample(thread, stack, "S", call=202, argument=0x1000)
        d.wait(threads[0], threads[1], "a_lock", deadlock=True)
        d.wait(threads[1], threads[0], "b_lock", deadlock=True)
        path = self.path("deadlock.html")
        self.report("-f", "html", "-o", path, d.write(self.path("deadlock.ss")))
        self.show(path, "")
        texts = self.texts(self.save("svg")[1])
        self.assertIn("a<b>? 100", texts)
        self.assertIn("mutex a_lock (0x10)", texts)
        red, = self.browser.run(
            "return [getComputedStyle(document.querySelector('#graph .cycle rect')).stroke]")
        self.assertIn(red.encode(), self.save("svg")[1])
        self.assertEqual(self.save("png")[1][:4], b"\x89PNG")


if __name__ == "__main__":
    main()
