"""The page of stacksnap report -f html in a headless Chromium: what clicks and keys change.
The page must not use the network, and runs no other script.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import browser  # noqa: E402
from page import BOX, PIXEL, PageTest, replace_data  # noqa: E402
from recordings import PERIOD, Description, main  # noqa: E402


class Page(PageTest):
    asks_for_requests = True

    def test_no_network(self):
        self.browser.requests()
        self.show(self.page())
        addresses = [url for url in self.browser.requests() if not url.startswith("chrome:")]
        self.assertEqual([url.split("?")[0] for url in addresses], ["file://" + self.page()])
        with open(self.page(), encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"(?i)(src|href)=|@import|(?<!object)url\(|https?://")

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

    def test_times_of_a_thread(self):
        """The tip of a thread says how long it was on a CPU, and waited for one."""
        threads = self.browser.run("return window.stacksnap.model.threads.map("
                                   "(t) => [t.cpu_ns, t.ready_ns])")
        self.assertTrue(any(cpu for cpu, _ in threads), threads)
        text = self.browser.run(
            "const model = window.stacksnap.model;"
            "const thread = model.threads.findIndex((t) => t.cpu_ns > 0);"
            "return cpuText(model.threads[thread]);")
        self.assertRegex(text, r"^: [0-9.]+ s on a CPU, [0-9.]+ s waiting for one$")

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

    def test_waiting_for_a_cpu(self):
        """Time in state R in which a thread waited for a CPU is a state of its own in the
        timeline, and the page says how many samples that are."""
        def wait(data):
            data["runs"]["ready"] = [750 if state == "R" else 0 for state in data["runs"]["state"]]
            return data

        self.assertNotIn("waiting", self.browser.text("#legend"))
        self.assertNotIn("CPU", self.browser.text("#counts"))
        path = self.path("ready.html")
        replace_data(self.page(), wait, path)
        self.show(path)
        self.assertIn("waiting for a CPU", self.browser.text("#legend"))
        self.assertIn("; about 45 waited for a CPU", self.browser.text("#counts"))
        sums = self.browser.run(
            "const t = window.stacksnap.timeline, into = new Float64Array(100000 * STATES.length);"
            "t.model.threads.forEach((_, i) => t.columns(i, into));"
            "const sums = STATES.map(() => 0); into.forEach((n, i) => { sums[i % STATES.length] += n });"
            "return [sums[RUNNING], sums[READY]]")
        self.assertAlmostEqual(sums[1] / sums[0], 3, 3)

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
                "const t = window.stacksnap.timeline, c = t.canvas.getContext('2d');"
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
        self.report("-f", "html", "-o", path, d.write(self.path("gap.ss")))
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
        self.assertIn("missed ticks: 1 gap, 1.00 s", self.browser.text("#legend"))

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

    def test_low_window(self):
        """The line about the selected frame is visible, and the timeline is as high as its box."""
        frame = self.browser.run("return outerHeight - innerHeight")
        self.browser.size(1000, 700 + frame)
        self.browser.settle()
        height, line, canvas, rows = self.browser.run(
            "const box = (id) => document.getElementById(id).getBoundingClientRect();"
            "return [innerHeight, box('selection').bottom, box('rows-canvas').height,"
            " box('rows').height]")
        self.assertEqual(height, 700)
        self.assertLessEqual(line, height)
        self.assertLessEqual(canvas, rows)

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


if __name__ == "__main__":
    main()
