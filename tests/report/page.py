"""Shared by the tests of the page of stacksnap report -f html: a page in a headless Chromium,
and where things are in it. Each test fails if the page writes to the console.

Debian packages: chromium, chromium-driver."""

import base64
import gzip
import itertools
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import browser  # noqa: E402
from recordings import WALL, Description, ReportTest  # noqa: E402

TICKS = 100
LOADS = itertools.count()

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


class BrowserTest(ReportTest):
    asks_for_requests = False

    @classmethod
    def setUpClass(cls):
        why = browser.missing()
        if why:
            raise unittest.SkipTest(why)
        super().setUpClass()
        cls.browser = browser.Browser(requests=cls.asks_for_requests)
        cls.addClassCleanup(cls.browser.close)


class PageTest(BrowserTest):
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
        # A query makes it another address, whose page is loaded anew, but by the same renderer.
        self.browser.open("file://%s?%d%s" % (path, next(LOADS), link))
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

    def tip(self):
        return not self.browser.run("return document.getElementById('tip').hidden")

    def chosen(self):
        return self.browser.run("return document.getElementById('thread').selectedOptions[0].text")

    def labels(self):
        """The names in each row of the flame graph, from left to right."""
        return self.browser.run("return window.stacksnap.flame.rows.map(r => r.node.map("
                                "n => window.stacksnap.flame.label(n)))")

    def rows(self, table):
        return self.browser.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                                ".map(r => [...r.cells].map(c => c.textContent.trim()))", table)

    def calls(self):
        return [[cell.lstrip(SIGNS) for cell in row] for row in self.rows("#calls")]

    def flame_rows(self, which):
        return self.browser.run("const f = window.stacksnap.sandwich[arguments[0]];"
                                "return f.rows.map(r => r.node.map(n => f.label(n)))", which)

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

    def link(self):
        self.browser.run("window.stacksnap.link.write()")
        return self.browser.run("return location.hash")
