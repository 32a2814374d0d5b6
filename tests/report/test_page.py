"""The page of stacksnap report -f html in a headless Chromium: what clicks and keys change.
The page must not use the network, and must not write to the console.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import browser  # noqa: E402
from recordings import (LIMIT, PERIOD, ROOT, SHOP, WALL, Description,  # noqa: E402
                        ReportTest, build_library, main)
from mariadb import Connection, MariaDbServer  # noqa: E402

TICKS = 100

# Where a frame is drawn: [x, y, width], the middle in pixels of the window, or null.
FRAME_AT = """
const flame = window.stacksnap.flame, name = arguments[0];
const box = flame.canvas.getBoundingClientRect();
for (let row = 0; row < flame.rows.length; row++) {
  const line = flame.rows[row];
  for (let i = 0; i < line.node.length; i++)
    if (flame.label(line.node[i]) === name)
      return [box.left + line.x[i] + line.width[i] / 2, box.top + flame.top(row) + 9, line.width[i]];
}
return null;
"""
SIGNS = "\u25b8\u25be"  # of rows that can be opened or closed
# The colour of a pixel of the canvas.
PIXEL = """
const canvas = document.querySelector(arguments[0]), box = canvas.getBoundingClientRect();
const scale = canvas.width / box.width;
return [...canvas.getContext("2d").getImageData(Math.round((arguments[1] - box.left) * scale),
  Math.round((arguments[2] - box.top) * scale), 1, 1).data];
"""
BOX = """
const box = document.querySelector(arguments[0]).getBoundingClientRect();
return [box.left, box.top, box.width, box.height];
"""


def replace_data(path, change, to):
    """Writes a copy of a page with other data."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    found = re.search(r'(<script id="data" type="application/octet-stream">)([^<]*)', page)
    data = json.loads(gzip.decompress(base64.b64decode(found.group(2))))
    packed = base64.b64encode(gzip.compress(json.dumps(change(data)).encode(), 1)).decode()
    with open(to, "w", encoding="utf-8") as file:
        file.write(page[:found.start(2)] + packed + page[found.end(2):])


class Page(ReportTest):
    @classmethod
    def setUpClass(cls):
        why = browser.missing()
        if why:
            raise unittest.SkipTest(why)
        super().setUpClass()
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    violates = False  # the test violates the page's policy

    def setUp(self):
        self.browser.size(1280, 900)
        self.show(self.page())

    def tearDown(self):
        log = [entry for entry in self.browser.log()
               if "getImageData" not in entry["message"]  # caused by PIXEL
               and not (self.violates and entry["source"] == "security")]
        self.assertEqual(log, [], "there are messages on the console")

    def page(self):
        path = self.path("shop.html")
        if not os.path.exists(path):
            shop = self.shop("page.ss", ticks=TICKS)
            other = self.shop("page2.ss", "beta", ticks=TICKS, wall=WALL, pid=700,
                              bias=0x550000000000)
            self.report("-f", "html", "-o", path, shop, other)
        return path

    def show(self, path, link="#show=all&order=name"):
        self.browser.open("about:blank")
        self.browser.requests()
        self.browser.open("file://" + path + link)
        self.browser.wait("return window.stacksnap && 1", "the page")
        self.browser.settle()

    def frame(self, name):
        return self.browser.run(FRAME_AT, name)

    def total(self):
        return self.browser.run("return window.stacksnap.tree.total[0]")

    def detail(self):
        return self.browser.run("return document.getElementById('detail').textContent")

    def pressed(self, name):
        return self.browser.run("return document.getElementById(arguments[0])"
                                ".getAttribute('aria-pressed')", name) == "true"

    def drag(self, begin, end, selector="#overview"):
        """Drags over this part of the time, given as fractions."""
        box = self.browser.run(BOX, selector)
        label = self.browser.run("return window.stacksnap.timeline.label")
        left, width = box[0] + label, box[2] - label
        y = box[1] + 12
        self.browser.mouse(("move", left + width * begin, y), ("down",),
                           ("move", left + width * (begin + end) / 2, y),
                           ("move", left + width * end, y), ("up",))

    def test_no_network(self):
        addresses = [url for url in self.browser.requests() if not url.startswith("chrome:")]
        self.assertEqual([url for url in addresses if not url.startswith("about:")],
                         ["file://" + self.page()])
        with open(self.page(), encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"(?i)(src|href)=|@import|url\(|https?://")

    def test_head(self):
        self.assertEqual(self.browser.text("#title"), "2 processes")
        self.assertIn("4 threads", self.browser.text("#summary"))
        self.assertIn("400 samples", self.browser.text("#summary"))
        self.assertEqual(self.browser.text("#legend").split(), ["running", "sleeping"])

    def test_zoom_by_click(self):
        whole = self.frame("shop_serve")
        self.assertAlmostEqual(whole[2] / self.browser.run("return window.stacksnap.flame.width"),
                               0.15, 2)
        self.browser.click_at(*whole[:2])
        wide = self.frame("shop_serve")
        self.assertGreater(wide[2], 6 * whole[2])
        self.assertIn("shop_serve", self.detail())
        self.assertIn("15.0 %", self.detail())
        self.assertIsNone(self.frame("shop_wait_for_work"))
        self.browser.click("#unzoom")
        self.assertEqual(self.frame("shop_serve"), whole)
        self.assertIsNotNone(self.frame("shop_wait_for_work"))

    def test_frames_are_drawn(self):
        """Frames have the colour of their module, or that of a match."""
        x, y, width = self.frame("shop_wait_for_work")
        self.browser.mouse(("move", 5, 5))
        spot = (x + width / 2 - 8, y + 6)
        drawn = self.browser.run(PIXEL, "#flame-canvas", *spot)
        panel = self.browser.run(PIXEL, "#flame-canvas", spot[0], y + 19 * 8)
        self.assertNotEqual(drawn, panel)
        self.browser.type("#search", "wait_for")
        self.assertNotEqual(self.browser.run(PIXEL, "#flame-canvas", *spot), drawn)

    def test_search(self):
        self.browser.press("/")
        self.browser.press(*"PARSE")
        self.assertEqual(self.browser.text("#matched"), "15.0 %")
        self.assertEqual(self.total(), 60)
        self.assertIn("340 without a match", self.browser.text("#counts"))
        self.browser.press("Escape")
        self.assertEqual(self.browser.text("#matched"), "")
        self.assertEqual(self.total(), 400)
        self.browser.type("#search", "/serve|wait/")
        self.assertEqual(self.browser.text("#matched"), "100.0 %")
        self.browser.type("#search", "x")
        self.assertEqual(self.browser.text("#matched"), "0.0 %")
        self.assertEqual(self.total(), 0)

    def test_search_highlights(self):
        """Matches can be highlighted among all stacks, instead."""
        self.browser.type("#search", "parse")
        self.browser.click("#only-matches")
        self.assertFalse(self.pressed("only-matches"))
        self.assertEqual(self.browser.text("#matched"), "15.0 %")
        self.assertEqual(self.total(), 400)
        self.assertIsNotNone(self.frame("shop_wait_for_work"))

    def test_hover(self):
        self.browser.mouse(("move", *self.frame("shop_hash")[:2]))
        self.assertFalse(self.browser.run("return document.getElementById('tip').hidden"))
        text = self.browser.text("#tip")
        self.assertIn("shop_hash", text)
        self.assertIn("60 samples, 15.0 %", text)
        self.assertIn("libshop.so", text)

    def tip(self):
        return not self.browser.run("return document.getElementById('tip').hidden")

    def test_tips_do_not_stick(self):
        """A tip goes away with the pointer, and if something moves below the pointer."""
        at = self.frame("shop_hash")[:2]

        def hover():
            self.browser.mouse(("move", at[0] - 2, at[1]), ("move", *at))
            self.assertTrue(self.tip())

        for event in ("new Event('blur')", "new Event('resize')"):
            hover()
            self.browser.run("window.dispatchEvent(%s)" % event)
            self.assertFalse(self.tip(), event)
        hover()
        self.browser.run("document.documentElement.dispatchEvent(new PointerEvent('pointerleave'))")
        self.assertFalse(self.tip())
        hover()
        self.browser.press("Shift")
        self.assertFalse(self.tip())
        hover()
        self.browser.mouse(("move", 3, 3))
        self.assertFalse(self.tip())
        hover()
        self.browser.click_at(*at)  # zooms: another frame is there now
        self.assertFalse(self.tip())

    def test_tips_do_not_stick_when_scrolled(self):
        self.browser.size(1280, 420)
        self.show(self.page())
        self.browser.run("document.getElementById('flame').scrollIntoView()")
        self.browser.run("document.getElementById('flame').style.flex = '0 0 60px';"
                         "document.getElementById('flame').style.minHeight = '60px';"
                         "window.dispatchEvent(new Event('resize'))")
        at = self.frame("shop_wait_for_work")[:2]
        self.browser.mouse(("move", at[0] - 2, at[1]), ("move", *at))
        self.assertTrue(self.tip())
        self.browser.run("document.getElementById('flame').scrollTop += 19")
        self.browser.wait("return document.getElementById('tip').hidden ||"
                          "!document.getElementById('tip').textContent.includes('wait_for')",
                          "the tip of what was scrolled away to hide")

    def test_a_finger_gets_no_tip(self):
        """What was touched is described below the graph."""
        x, y, _ = self.frame("shop_serve")
        self.browser.mouse(("move", x, y), ("down",), ("up",), kind="touch")
        self.assertFalse(self.tip())
        self.assertIn("shop_serve", self.detail())

    def test_only_its_own_script_runs(self):
        """The policy names the hashes of the script and the style: markup that gets into the
        page in spite of all care has no effect."""
        self.violates = True
        self.browser.run("window.hits = 0; document.addEventListener('securitypolicyviolation',"
                         "() => { window.hits++; });"
                         "const s = document.createElement('script');"
                         "s.append('document.title = 1'); document.body.append(s);"
                         "const i = document.createElement('style');"
                         "i.append('body { display: none }'); document.body.append(i)")
        self.browser.wait("return window.hits >= 2", "two violations of the policy")
        self.assertEqual(self.browser.text("#title"), "2 processes")
        self.assertNotEqual(self.browser.run("return document.title"), "1")
        self.assertTrue(self.browser.run("try { document.body.innerHTML = '<i>' } "
                                         "catch { return true }"))

    def test_drag_selects_a_time(self):
        self.assertEqual(self.total(), 400)
        self.drag(0.25, 0.75)
        part = self.total()
        self.assertTrue(190 <= part <= 210, part)
        self.assertAlmostEqual(float(self.browser.run(
            "return document.getElementById('from').value")), 0.25, 1)
        self.drag(0.1, 0.2, "#rows")
        self.assertTrue(36 <= self.total() <= 44, self.total())
        self.browser.click("#whole")
        self.assertEqual(self.total(), 400)

    def test_typed_time(self):
        self.browser.run("for (const id of ['from', 'to']) document.getElementById(id).value = ''")
        self.browser.type("#from", "0.5" + browser.KEYS["Tab"])
        self.assertEqual(self.total(), 200)

    def chosen(self):
        return self.browser.run("return document.getElementById('thread').selectedOptions[0].text")

    def test_threads(self):
        self.browser.run("document.getElementById('thread').focus()")
        self.browser.press("Down")
        self.assertRegex(self.chosen(), r"^(worker|main) \d+")
        self.assertEqual(self.total(), 100)
        self.browser.press("Up")
        self.assertEqual(self.total(), 400)
        box = self.browser.run(BOX, "#rows")
        first, second = (box[0] + 20, box[1] + 8), (box[0] + 20, box[1] + 24)
        self.browser.click_at(*first)  # a name beside the time
        self.assertEqual(self.total(), 100)
        self.assertRegex(self.chosen(), r"^(worker|main) \d+")
        self.browser.mouse(("move", *second), ("down",), ("up",), modifier="Shift")
        self.assertEqual(self.total(), 200)
        self.assertEqual(self.chosen(), "2 threads")
        self.browser.mouse(("move", *first), ("down",), ("up",), modifier="Shift")
        self.assertEqual(self.total(), 100)
        self.browser.click_at(*second)
        self.assertEqual(self.total(), 400)
        self.browser.press("]")
        self.assertEqual(self.total(), 100)
        self.browser.press("[")
        self.assertEqual(self.total(), 400)

    def test_threads_of_one_name(self):
        d = Description()
        process = d.process()
        stack = d.stack((None, 0x10))
        threads = [d.thread(process, 100 + i, name) for i, name in
                   enumerate(("main", "pool", "pool", "pool"))]
        d.tick()
        d.tick()
        for thread in threads:
            d.sample(thread, stack, "R")
        path = self.path("pool.html")
        self.report("-f", "html", "-o", path, d.write(self.path("pool.ss")))
        self.show(path)
        self.browser.run("document.getElementById('thread').focus()")
        self.browser.press("Down")
        self.assertEqual(self.chosen(), "3 threads pool")
        self.assertEqual(self.total(), 3)

    def test_opens_on_work(self):
        """Waits are hidden, and the page says how many."""
        self.show(self.page(), "")
        self.assertTrue(self.pressed("show-cpu"))
        self.assertEqual(self.total(), 60)
        self.assertIsNone(self.frame("shop_wait_for_work"))
        self.assertEqual(self.browser.text("#show-cpu"), "On CPU 15.0 %")
        counts = self.browser.text("#counts")
        self.assertEqual(counts, "60 of 400 samples; hidden: 140 waiting (35.0 %), "
                                 "200 idle (50.0 %)")
        self.browser.press("c")
        self.assertTrue(self.pressed("show-busy"))
        self.assertEqual(self.total(), 200)  # without epoll_wait
        self.browser.click("#show-all")
        self.assertEqual(self.total(), 400)
        self.assertEqual(self.browser.text("#counts"), "400 of 400 samples")

    def test_recording_of_work_only(self):
        """There is no choice of samples."""
        self.show_recursion()
        self.assertFalse(self.browser.run(
            "return document.getElementById('show').checkVisibility()"))
        self.assertEqual(self.total(), 10)

    def test_idle_waits(self):
        """Without any work on a CPU, the page opens on what is not known to be idle. A wait for
        a condition variable is idle, unless a lock is made of it."""
        source = "".join("int %s(int n)\n{\n\t__asm__ volatile(\"\" : \"+r\"(n));\n"
                         "\treturn n * %d;\n}\n" % (name, i + 3) for i, name in enumerate(
                             ("pthread_cond_wait", "lll_lock_wait", "next_job", "acquire_row_lock",
                              "clock_of_blocks", "deadlock_handler")))
        library = self.path("libwaits.so")
        _, build_id = build_library(library, source, ("-fno-builtin",))
        lines = subprocess.run(["nm", library], stdout=subprocess.PIPE, text=True, check=True)
        at = {name: int(value, 16) + 1 for value, name in
              re.findall(r"^([0-9a-f]+) T (\w+)$", lines.stdout, re.M)}
        d = Description()
        process = d.process()
        module = d.module(process, library, build_id)
        samples = [(("pthread_cond_wait", "next_job"), 202, True),
                   (("pthread_cond_wait", "clock_of_blocks", "deadlock_handler"), 202, True),
                   (("pthread_cond_wait", *["next_job"] * 8), 202, True),
                   (("pthread_cond_wait", *["next_job"] * 9), 202, False),  # in a job
                   (("pthread_cond_wait", "next_job", None), 202, False),  # incomplete
                   ((), -1, True),  # a kernel worker of io_uring
                   (("pthread_cond_wait", "acquire_row_lock", "next_job"), 202, False),
                   (("lll_lock_wait", "next_job"), 202, False), (("next_job",), 202, False),
                   (("next_job",), 7, True), (("next_job",), 0, False), (("next_job",), -1, False)]
        d.tick()
        for i, (names, call, _) in enumerate(samples):
            stack = d.stack(*[(module, at[name] + (1 if k else 0))
                              for k, name in enumerate(names) if name],
                            end=LIMIT if None in names else ROOT)
            d.sample(d.thread(process, 100 + i, "t"), stack, "S", call=call)
        d.tick()
        path = self.path("idle.html")
        self.report("-f", "html", "-o", path, d.write(self.path("idle.ss")))
        self.show(path, "")
        self.assertTrue(self.pressed("show-busy"))
        classes = self.browser.run("return [...window.stacksnap.model.runClass]")
        self.assertEqual([one == 2 for one in classes], [idle for _, _, idle in samples])

    def labels(self):
        """The names in each row of the flame graph, from left to right."""
        return self.browser.run("return window.stacksnap.flame.rows.map(r => r.node.map("
                                "n => window.stacksnap.flame.label(n)))")

    def test_order(self):
        self.assertEqual(self.labels()[2], ["shop_serve", "shop_wait_for_work"])
        self.browser.press("h")
        self.assertTrue(self.pressed("heavy"))
        self.assertEqual(self.labels()[2], ["shop_wait_for_work", "shop_serve"])
        self.browser.press("c")  # on CPU
        self.assertEqual(self.labels()[2:], [["shop_serve"], ["shop_parse"], ["shop_hash"]])

    def test_invert(self):
        """Innermost functions first; the heaviest is on the left."""
        self.browser.press("h", "i")
        self.assertTrue(self.pressed("invert"))
        self.assertEqual(self.labels(), [
            ["all"], ["shop_wait_for_work", "shop_hash"], ["shop_start", "shop_parse"],
            ["shop_serve"], ["shop_start"]])
        self.assertEqual(self.total(), 400)
        self.browser.press("2")
        self.assertEqual([(row[0], row[2].lstrip(SIGNS)) for row in self.rows("#calls")],
                         [("85.0 %", "shop_wait_for_work"), ("85.0 %", "shop_start"),
                          ("15.0 %", "shop_hash")])
        self.browser.press("1", "i")
        above = self.frame("shop_hash")[1]
        self.browser.press("b")
        self.assertTrue(self.pressed("flip"))
        self.assertNotEqual(self.frame("shop_hash")[1], above)
        self.assertGreater(self.frame("shop_start")[1], self.frame("shop_hash")[1])

    def test_keys_in_the_flame_graph(self):
        self.browser.run("document.getElementById('flame').focus()")
        self.browser.press("Down")
        self.assertIn("shop_start", self.detail())
        self.browser.press("Down")
        self.assertIn("shop_wait_for_work", self.detail())
        self.browser.press("Left")
        self.assertIn("shop_serve", self.detail())
        self.browser.press("Enter")
        self.assertIsNone(self.frame("shop_wait_for_work"))
        self.browser.press("Backspace")
        self.assertIsNotNone(self.frame("shop_wait_for_work"))
        self.browser.press("Escape")
        self.assertIn("all", self.detail())

    def test_keys_in_the_timeline(self):
        self.browser.run("document.getElementById('time').focus()")
        self.browser.press(*["Left"] * 50, modifier="Shift")
        half = self.total()
        self.assertTrue(190 <= half <= 210, half)
        self.browser.press(*["Right"] * 20)
        self.assertAlmostEqual(self.total(), half, delta=8)
        self.assertAlmostEqual(float(self.browser.run(
            "return document.getElementById('from').value")), 0.2, 2)
        self.browser.press("Escape")
        self.assertEqual(self.total(), 400)

    def rows(self, table):
        return self.browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                                ".map(r => [...r.cells].map(c => c.textContent.trim()))", table)

    def test_functions(self):
        self.browser.click("#tab-functions")
        rows = self.rows("#functions")
        self.assertEqual(rows[0], ["85.0 %", "85.0 %", "shop_wait_for_work", "libshop.so"])
        self.assertEqual(rows[1], ["15.0 %", "15.0 %", "shop_hash", "libshop.so"])
        self.browser.click("#functions th:nth-child(2) button")
        self.assertEqual(self.rows("#functions")[0],
                         ["0.0 %", "100.0 %", "shop_start", "libshop.so"])
        self.browser.click("#functions th:nth-child(3) button")
        names = [row[2] for row in self.rows("#functions")]
        self.assertEqual(names, sorted(names))
        self.browser.click("#functions tbody tr:nth-child(1) button")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_hash")

    def calls(self):
        return [[cell.lstrip(SIGNS) for cell in row] for row in self.rows("#calls")]

    def test_call_tree(self):
        """Opened along most of the samples; keys open and close rows."""
        self.browser.click("#tab-calls")
        self.assertEqual(self.calls(), [
            ["100.0 %", "", "shop_start", "libshop.so"],
            ["85.0 %", "85.0 %", "shop_wait_for_work", "libshop.so"],
            ["15.0 %", "", "shop_serve", "libshop.so"]])
        self.browser.run("document.querySelector('#calls tbody tr').focus()")
        self.browser.press("Down", "Down")
        self.assertIn("shop_serve", self.detail())
        self.browser.press("Right")  # opens those below with a single callee as well
        self.assertEqual([row[2] for row in self.calls()[2:]],
                         ["shop_serve", "shop_parse", "shop_hash"])
        self.browser.press("Right", "Right")
        self.assertIn("shop_hash", self.detail())
        self.browser.press("Left", "Left", "Left")
        self.assertIn("shop_serve", self.detail())
        self.assertEqual(len(self.calls()), 4)
        self.browser.press("Home", "Enter")
        self.assertEqual([row[2] for row in self.calls()], ["shop_start"])
        self.browser.press("*")
        self.assertEqual(len(self.calls()), 5)
        self.browser.click("#calls tbody tr:nth-child(1) .sign")
        self.assertEqual(len(self.calls()), 1)
        self.browser.press("c")
        self.assertEqual(self.calls()[0], ["100.0 %", "", "shop_start", "libshop.so"])
        self.assertEqual(self.total(), 60)

    def flame_rows(self, which):
        return self.browser.run("const f = window.stacksnap.sandwich[arguments[0]];"
                                "return f.rows.map(r => r.node.map(n => f.label(n)))", which)

    def test_callers_and_callees(self):
        """Of a function that was selected in the table, the graph or the call tree."""
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.browser.click("#open-function")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_parse")
        self.assertIn("total 15.0 %, 60 samples", self.browser.text("#sandwich-facts"))
        self.assertEqual(self.flame_rows("callers"),
                         [["all"], ["shop_parse"], ["shop_serve"], ["shop_start"]])
        self.assertEqual(self.flame_rows("callees"), [["all"], ["shop_parse"], ["shop_hash"]])
        self.browser.run("document.getElementById('callees').focus()")
        self.browser.press("Down", "Down", "Enter")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_hash")
        self.assertEqual(self.flame_rows("callees"), [["all"], ["shop_hash"]])
        self.browser.click("#functions tbody tr:nth-child(1) button")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_wait_for_work")
        self.browser.press("c")  # its samples are hidden now
        self.assertIn("total 0.0 %", self.browser.text("#sandwich-facts"))

    def test_callers_of_recursion(self):
        """Each sample counts once."""
        self.show_recursion()
        self.browser.press("3")
        self.browser.run("const p = window.stacksnap;"
                         "p.selectFunction(p.model.names.indexOf('shop_parse'))")
        self.assertIn("total 100.0 %, 10 samples", self.browser.text("#sandwich-facts"))
        for which in ("callers", "callees"):
            self.assertEqual(self.browser.run(
                "return window.stacksnap.sandwich[arguments[0]].tree.total[0]", which), 10)
        self.assertEqual(self.flame_rows("callers"), [["all"], ["shop_parse"], ["shop_start"]])

    def show_recursion(self):
        """start calls parse, which calls itself through serve, up to three times."""
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 100, "main")
        stacks = [self.stack_of(d, module, "hash", *["parse", "serve"] * deep, "parse", "start")
                  for deep in range(4)]
        stacks.append(self.stack_of(d, module, "step", "step", "step", "parse", "start"))
        for tick in range(10):
            d.tick()
            d.sample(thread, stacks[tick % 5], "R")
        path = self.path("recursion.html")
        if not os.path.exists(path):
            self.report("-f", "html", "-o", path, d.write(self.path("recursion.ss")))
        self.show(path)

    def test_collapse_recursion(self):
        self.show_recursion()
        self.assertEqual(max(len(row) for row in self.labels()), 3)
        self.assertEqual(len(self.labels()), 10)
        self.browser.click("#recursion")
        self.assertTrue(self.pressed("recursion"))
        self.assertEqual([sorted(row) for row in self.labels()], [
            ["all"], ["shop_start"], ["shop_parse"], ["shop_hash", "shop_serve", "shop_step"],
            ["shop_parse"], ["shop_hash"]])
        self.assertEqual(self.total(), 10)
        self.browser.press("r")
        self.assertEqual(len(self.labels()), 10)

    def test_focus(self):
        """Only stacks that call the function, from there on."""
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.browser.click("#focus")
        self.assertEqual(self.labels(), [["all"], ["shop_parse"], ["shop_hash"]])
        self.assertEqual(self.total(), 60)
        self.assertIn("340 by focus or exclusion", self.browser.text("#counts"))
        self.drag(0.5, 1)
        self.assertTrue(28 <= self.total() <= 32, self.total())
        self.browser.click(".change")
        self.assertTrue(195 <= self.total() <= 205, self.total())
        self.assertIn("shop_serve", sum(self.labels(), []))

    def test_drop(self):
        """The callees of the function move to its callers."""
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.browser.press("d")
        self.assertEqual(self.labels()[2:], [["shop_serve", "shop_wait_for_work"], ["shop_hash"]])
        self.assertEqual(self.total(), 400)
        self.assertEqual(self.browser.text(".change"), "Dropped: shop_parse \u00d7")
        self.browser.click_at(*self.frame("shop_hash")[:2])
        self.browser.press("d")  # the innermost function: its samples go to its caller
        self.browser.press("3")
        self.assertEqual([row[:3] for row in self.rows("#functions")], [
            ["85.0 %", "85.0 %", "shop_wait_for_work"], ["15.0 %", "15.0 %", "shop_serve"],
            ["0.0 %", "100.0 %", "shop_start"]])
        self.browser.press("Escape", "Escape")
        self.assertEqual(len(self.rows("#functions")), 5)

    def test_exclude(self):
        """The stacks that call the function do not count."""
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.browser.click("#exclude")
        self.assertEqual(self.total(), 340)
        self.assertEqual(self.labels(), [["all"], ["shop_start"], ["shop_wait_for_work"]])
        self.assertIn("60 by focus or exclusion", self.browser.text("#counts"))
        self.browser.press("Escape")
        self.assertEqual(self.total(), 400)

    def test_functions_begin_with_the_hottest(self):
        """Not with the reason of an incomplete stack."""
        self.browser.press("3")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_wait_for_work")
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 100, "main")
        stacks = [d.stack((None, 0x10)), self.stack_of(d, module, "hash", "start")]
        for tick in range(4):
            d.tick()
            d.sample(thread, stacks[tick // 3], "R")
        path = self.path("reasons.html")
        self.report("-f", "html", "-o", path, d.write(self.path("reasons.ss")))
        self.show(path, "#view=functions")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_hash")

    def test_contrast(self):
        """Text can be read in both colour schemes: a ratio of 4.5, as WCAG 2 asks for."""
        ratio = """
        const context = document.createElement("canvas").getContext("2d");
        const light = (color) => {
          context.fillStyle = color;
          context.fillRect(0, 0, 1, 1);
          const parts = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) =>
            value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
          return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const style = getComputedStyle(document.documentElement);
        const value = (name) => style.getPropertyValue("--" + name).trim();
        const frames = [0, 1, 2, 3, 4, 5, 6, 7].map((m) => [palette().ink, palette().frame(m, 3 * m)]);
        return [["ink", "paper"], ["ink", "panel"], ["soft", "panel"], ["soft", "paper"],
          ["warn", "paper"], ["accent-ink", "accent"], ["match", "panel"], ["match-ink", "match"],
          ["ink", "selected"], ["frame-ink", "frame-none"]].map((pair) => pair.map(value))
          .concat(frames).map(([a, b]) => [light(a), light(b)])
          .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        """
        for _ in ("light", "dark"):
            self.browser.press("t")
            ratios = self.browser.run(ratio)
            self.assertGreaterEqual(min(ratios), 4.5, ratios)

    def test_lines(self):
        """Tips and the line below the graph tell the file and the line, or several."""
        source = SHOP.replace("\n\treturn", "\n\tn++;\n\treturn")
        library = self.path("liblines.so")
        at, build_id = build_library(library, source)
        d = Description()
        process = d.process()
        module = d.module(process, library, build_id)
        thread = d.thread(process, 100, "main")
        for tick in range(4):
            d.tick()
            d.sample(thread, d.stack((module, at["hash"] + (5 if tick == 3 else -1)),
                                     (module, at["start"])), "R")
        path = self.path("lines.html")
        self.report("-f", "html", "-o", path, d.write(self.path("lines.ss")))
        self.show(path)
        self.browser.mouse(("move", *self.frame("shop_hash")[:2]))
        first, second = re.search(r"(\S+shop\.c:\d+) \(75\.0 %\), (\S+shop\.c:\d+) \(25\.0 %\)",
                                  self.browser.text("#tip")).groups()
        self.assertNotEqual(first, second)
        self.drag(0.7, 1)
        self.browser.mouse(("move", *self.frame("shop_hash")[:2]))
        self.assertRegex(self.browser.text("#tip"), re.escape(second) + "$")
        self.browser.click_at(*self.frame("shop_start")[:2])
        self.assertRegex(self.detail(), r"shop\.c:\d+$")
        self.browser.press("i")
        self.browser.mouse(("move", *self.frame("shop_hash")[:2]))
        self.assertRegex(self.browser.text("#tip"), re.escape(second) + "$")

    def link(self):
        self.browser.run("window.stacksnap.link.write()")
        return self.browser.run("return location.hash")

    def test_a_link_keeps_the_view(self):
        self.browser.click_at(*self.frame("shop_serve")[:2])
        zoomed = self.labels()
        self.browser.press("c", "c")  # without idle
        self.drag(0.2, 0.6)
        self.browser.press("]")
        self.browser.type("#search", "shop")
        self.browser.press("Escape", "Escape", "m")
        link = self.link()
        state = "const p = window.stacksnap, m = p.model; return [p.view, m.shows, m.window," \
                "m.chosen && [...m.chosen], p.tree.total[0], p.flame.zoom, p.flame.byWeight," \
                "m.onlyMatches, p.selected, m.changes, m.inverted, p.flame.rootAtBottom," \
                "document.getElementById('search').value]"
        before = self.browser.run(state)
        self.assertGreater(before[5], 0)
        self.show(self.page(), link)
        self.assertEqual(self.browser.run(state)[3:], before[3:])
        self.assertEqual(self.labels(), zoomed)
        self.assertEqual(self.link(), link)
        # another one, in the same page
        self.browser.press("w", "Escape", "Escape", "i", "b", "r")
        self.browser.click_at(*self.frame("shop_wait_for_work")[:2])
        self.browser.press("d", "3")
        self.browser.run("const p = window.stacksnap;"
                         "p.selectFunction(p.model.names.indexOf('shop_start'))")
        second, before = self.link(), self.browser.run(state)
        self.assertEqual(before[0], "functions")
        self.assertEqual([change["kind"] for change in before[9]], ["recursion", "drop"])
        self.browser.run("location.hash = arguments[0]", link)
        self.browser.wait("return window.stacksnap.view === 'flame'", "the first view")
        self.assertEqual(self.labels(), zoomed)
        self.browser.run("location.hash = arguments[0]", second)
        self.browser.wait("return window.stacksnap.view === 'functions'", "the second view")
        self.assertEqual(self.browser.run(state), before)

    def test_links_that_make_no_sense(self):
        for link in ("#view=waits", "#view=constructor&show=__proto__&threads=1/2,/&time=9-1",
                     "#time=a-b&zoom=9.zz&drop=nothing&focus=&function=x", "#%%%", "#zoom=.",
                     "#time=-5-99999999999&threads=" + "1/1," * 999, "#search=" + "%28" * 3000,
                     "#search=/(/&recursion=1&recursion=1"):
            self.show(self.page(), link)
            self.assertEqual(self.browser.run("return window.stacksnap.view"), "flame", link)
            self.assertIsNone(self.browser.run("return window.stacksnap.model.window"), link)

    def test_addresses_without_symbols(self):
        """The table has one line per module, which selects all of its addresses; a search lists
        each of them. Calls among them count once."""
        d = Description()
        process = d.process()
        shop = d.module(process, self.library, self.build_id)
        bare = d.module(process, "/opt/bare.so", "abab", bias=0x7e0000000000)
        thread = d.thread(process, 100, "main")
        stacks = [d.stack((bare, 0x1000 + i), (bare, 0x2000 + i % 3), (shop, self.at["start"] + 1))
                  for i in range(8)]
        stacks += [d.stack((None, 0x5000)), d.stack((shop, self.at["hash"]))]
        for stack in stacks:
            d.tick()
            d.sample(thread, stack, "R")
        path = self.path("places.html")
        self.report("-f", "html", "-o", path, d.write(self.path("places.ss")), status=(1,))
        self.show(path)
        self.browser.click("#tab-functions")
        for _ in range(2):
            self.assertEqual(self.rows("#functions"), [
                ["80.0 %", "80.0 %", "bare.so (no symbols: 11 addresses)", "bare.so"],
                ["10.0 %", "10.0 %", "[unmapped]+0x5000", ""],
                ["10.0 %", "10.0 %", "shop_hash", "libshop.so"],
                ["0.0 %", "80.0 %", "shop_start", "libshop.so"]])
            self.browser.press("i")  # the same in the inverted graph
        self.browser.click("#functions tbody tr:nth-child(1) button")
        self.assertIn("total 80.0 %", self.browser.text("#sandwich-facts"))
        self.browser.type("#search", "bare.so")
        self.assertEqual(self.browser.text("#matched"), "80.0 %")
        self.assertEqual(len(self.rows("#functions")), 11)
        self.browser.press("Escape", "Escape", "4")
        self.assertEqual(self.rows("#modules")[0][1], "80.0 %")

    def test_functions_follow_the_time(self):
        self.browser.press("3")
        self.drag(0.52, 0.545)
        shares = {row[2]: row[0] for row in self.rows("#functions")}
        self.assertEqual(shares["shop_hash"], "50.0 %")

    def test_modules(self):
        self.browser.press("4")
        rows = self.rows("#modules")
        self.assertEqual(len(rows), 1)
        self.assertIn(self.build_id, rows[0][0])
        self.assertEqual(rows[0][1], "100.0 %")
        self.assertIn("0x7f0000000000", rows[0][3])
        self.assertIn("0x550000000000", rows[0][3])

    def test_modules_loaded_and_unloaded(self):
        """A module of the first tick was always loaded; another one came and went."""
        d = Description()
        process = d.process()
        first = d.module(process, self.library, self.build_id, loaded=1)
        second = d.module(process, "/opt/plugin.so", "abab", bias=0x7e0000000000,
                          loaded=15_000_000)
        d.unload(second, 45_000_000)
        thread = d.thread(process, 100, "main")
        stacks = [d.stack((module, 0x10)) for module in (first, second)]
        for tick in range(10):
            d.tick()
            d.sample(thread, stacks[2 <= tick <= 3], "R")
        path = self.path("lives.html")
        self.report("-f", "html", "-o", path, d.write(self.path("lives.ss")), status=(1,))
        self.show(path)
        self.browser.click("#tab-modules")
        rows = {row[0].split("build-id")[0]: row for row in self.rows("#modules")}
        self.assertEqual(rows[self.library][1:3], ["80.0 %", "always"])
        self.assertEqual(rows["/opt/plugin.so"][1:3], ["20.0 %", "0.015 – 0.045"])
        self.assertRegex(rows["/opt/plugin.so"][0], r"build-id abab · \w")  # why it has no names
        bar = self.browser.run("return [...document.querySelectorAll('#modules .life i')].map("
                               "i => [i.style.left, i.style.width])")
        self.assertEqual([[round(float(part[:-1])) for part in one] for one in bar],
                         [[0, 100], [15, 30]])

    def test_long_names_keep_their_ids(self):
        d = Description()
        process = d.process(name="fifteen-letters", pid=4194000)
        stack = d.stack((None, 0x10))
        threads = [d.thread(process, 4194000 + i, "a-long-name-\u65e5\u672c" * 9)
                   for i in range(3)]
        d.tick()
        for thread in threads:
            d.sample(thread, stack, "R")
        path = self.path("names.html")
        self.report("-f", "html", "-o", path, d.write(self.path("names.ss")))
        self.show(path)
        for width in (1280, 420):
            self.browser.size(width, 900)
            self.browser.settle()
            labels = self.browser.run(
                "const t = window.stacksnap.timeline, c = t.lanes.getContext('2d');"
                "return [0, 1, 2].map(i => [t.shortLabel(c, i), c.measureText("
                "t.shortLabel(c, i)).width <= t.label - 6])")
            for i, (label, fits) in enumerate(labels):
                self.assertTrue(fits, label)
                self.assertRegex(label, "^a.*\u2026 %d$" % (4194000 + i))

    def test_missed_ticks_are_a_gap(self):
        """Half of the ticks were missed: nothing is drawn there, and the tip says why."""
        d = Description()
        process = d.process()
        thread = d.thread(process, 100, "main")
        stack = d.stack((None, 0x10))
        for tick in range(100):
            d.tick(missed=100 if tick == 50 else 0, step=101 * PERIOD if tick == 50 else None)
            d.sample(thread, stack, "R")
        path = self.path("gap.html")
        self.report("-f", "html", "-o", path, d.write(self.path("gap.ss")), status=(1,))
        self.show(path)
        left, top, width, _ = self.browser.run(BOX, "#rows")
        label = self.browser.run("return window.stacksnap.timeline.label")
        at = [(left + label + (width - label) * part, top + 9) for part in (0.1, 0.5, 0.9)]
        before, gap, after = [self.browser.run(PIXEL, "#rows-canvas", *spot) for spot in at]
        self.assertEqual(before, after)
        self.assertNotEqual(before, gap)
        self.browser.mouse(("move", *at[1]))
        self.assertIn("no samples", self.browser.text("#tip"))
        self.browser.mouse(("move", *at[2]))
        self.assertNotIn("no samples", self.browser.text("#tip"))

    def test_theme(self):
        color = "return getComputedStyle(document.body).backgroundColor"
        light = []
        for expected in ("light", "dark", "system"):
            self.browser.press("t")
            self.assertEqual(self.browser.text("#theme"), "Theme: " + expected)
            light.append(self.browser.run(color))
        self.assertNotEqual(light[0], light[1])
        self.assertEqual(light[2], light[0])  # a headless browser prefers light

    def test_help(self):
        self.browser.press("?")
        self.assertTrue(self.browser.run("return document.getElementById('help').open"))
        self.assertIn("search", self.browser.text("#help"))
        self.browser.click("#help-close")
        self.assertFalse(self.browser.run("return document.getElementById('help').open"))

    def test_focus_is_visible(self):
        self.browser.run("document.activeElement.blur()")
        for _ in range(12):
            self.browser.press("Tab")
            style = self.browser.run(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "return [e.id || e.tagName, s.outlineStyle, parseFloat(s.outlineWidth)]")
            self.assertNotEqual(style[1], "none", style)
            self.assertGreaterEqual(style[2], 1, style)

    def test_every_control_has_a_name(self):
        nameless = self.browser.run(
            "return [...document.querySelectorAll('button, input, select, [role]')].filter(e =>"
            "!(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label') ||"
            "e.getAttribute('aria-labelledby') || e.getAttribute('role') === 'tooltip'))"
            ".map(e => e.outerHTML)")
        self.assertEqual(nameless, [])

    def test_narrow_window(self):
        self.browser.size(420, 900)
        self.browser.settle()
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth <= "
                                          "document.documentElement.clientWidth"), True)
        self.browser.run("document.getElementById('flame').scrollIntoView()")
        self.browser.click_at(*self.frame("shop_serve")[:2])
        self.assertIsNone(self.frame("shop_wait_for_work"))

    def test_hostile_names(self):
        evil = "</script><img src=x onerror='document.title=1'>\u2028\x1b<b>"
        d = Description(host=evil)
        process = d.process(name=evil, executable=evil)
        module = d.module(process, "/tmp/" + evil, "ab12")
        thread = d.thread(process, 1, evil)
        stack = d.stack((module, 0x10))
        d.tick()
        d.sample(thread, stack, "R")
        path = self.path("evil.html")
        self.report("-f", "html", "-o", path, d.write(self.path("evil.ss")), status=(1,))
        self.show(path)
        for key in "4321":
            self.browser.press(key)
            self.browser.mouse(("move", 300, 500), ("move", 300, 420), ("move", 40, 210))
        self.assertIn("<img src=x", self.browser.text("#title"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b:not(#tip b)')"
                                          ".length"), 0)
        self.assertIn("pid 100", self.browser.run("return document.title"))


class Large(Page):
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
        data["system_calls"] = []
        data["functions"] = {"name": ["function_%d" % i for i in range(functions)],
                             "module": [0] * functions, "places": []}
        data["nodes"] = {"parent": parent, "function": function}
        data["frames"], data["calls"] = {}, {}
        data["recordings"][0]["ticks"] = [0] + [10_000] * (ticks - 1)
        data["recordings"][1]["ticks"] = []
        data["threads"] = [{"process": 0, "tid": i, "name": "t"} for i in range(100)]
        data["runs"] = {"thread": [0 if i % ticks or i == 0 else 1 for i in range(self.STACKS)],
                        "tick": [0] * self.STACKS, "count": [1] * self.STACKS, "stack": leaves,
                        "wait": [0] * self.STACKS, "state": "RSSS" * (self.STACKS // 4)}
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
        self.browser.press("Escape", "1")
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


class Real(Page):
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


class RowLock(MariaDbServer, ReportTest):
    """A query of MariaDB that waits for a row lock is no idle thread; connections without a
    query are."""

    @classmethod
    def setUpClass(cls):
        why = browser.missing()
        if why:
            raise unittest.SkipTest(why)
        super().setUpClass()

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
            with browser.Browser() as shown:
                shown.open("file://" + page + "#show=all")
                shown.wait("return window.stacksnap && 1", "the page")
                threads = shown.run("""
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
        self.assertGreater(threads["update"][1], 10, threads)
        self.assertEqual(threads["update"][2], 0, threads)
        self.assertGreater(threads["connection"][2], 50, threads)
        self.assertEqual(threads["connection"][1], 0, threads)


# Runs only the test of a real program.
for _name in [name for name in dir(Page) if name.startswith("test_")]:
    setattr(Real, _name, None)
# Runs only the test of the large page.
for _name in [name for name in dir(Page) if name.startswith("test_")]:
    setattr(Large, _name, None)


if __name__ == "__main__":
    main()
