"""The page of stacksnap report -f html in a headless Chromium: which samples count, what changes
their stacks, and the views of them.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from page import SIGNS, PageTest, replace_data  # noqa: E402
from recordings import LIMIT, ROOT, SHOP, Description, build_library, main  # noqa: E402


class Stacks(PageTest):
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

    def test_waits(self):
        """The table of waits: by kind and function, without idle ones, which leads to stacks."""
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        main_thread, worker = d.thread(process, 100, "main"), d.thread(process, 101, "<i>worker</i>")
        waits = self.stack_of(d, module, "wait_for_work", "start")
        works = self.stack_of(d, module, "hash", "start")
        for tick in range(10):
            d.tick()
            d.sample(main_thread, waits, "S", call=232, argument=5)
            if tick < 2:
                d.sample(worker, works, "R")
            else:  # two waits were too short to be looked up
                d.sample(worker, waits, "S", call=202, argument=0x1000,
                         owner=-1 if tick < 4 else 100)
        path = self.path("waits.html")
        if not os.path.exists(path):
            self.report("-f", "html", "-o", path, d.write(self.path("waits.ss")))
        self.show(path, "")
        self.browser.press("5")
        rows = self.rows("#waits")
        self.assertEqual([row[:5] for row in rows], [
            ["30.0 %", "0.06", "mutex", "mutex at 0x10, held by 100 (owner)", "shop_wait_for_work"],
            ["10.0 %", "0.02", "system call", "futex", "shop_wait_for_work"]])
        self.assertEqual(rows[0][5], "<i>worker</i> 101")
        self.assertEqual(self.browser.text("#waits-more"), "hidden: 10 idle (50.0 %)")
        # its stacks, also by a link, and undone
        self.browser.click("#waits td:nth-child(3) button")
        self.assertEqual(self.labels()[2:], [["shop_wait_for_work"]], self.labels())
        self.assertEqual(self.total(), 6)
        self.assertEqual(self.browser.text("#changes"), "Waits: mutex in shop_wait_for_work \u00d7")
        link = self.link()
        self.browser.click("#changes button")
        self.assertEqual([self.total(), self.pressed("show-cpu")], [2, True])
        self.show(path, link)
        self.assertEqual(self.total(), 6)
        # totals follow the selection; a function leads to its callers
        self.browser.press("5")
        self.browser.click("#show-all")
        self.drag(0.5, 1)
        rows = self.rows("#waits")
        self.assertEqual([row[:4] for row in rows], [
            ["50.0 %", rows[0][1], "system call", "epoll_wait fd 5"],
            ["50.0 %", rows[1][1], "mutex", rows[1][3]]])
        self.browser.click("#waits tr:nth-child(2) td:nth-child(5) button")
        self.assertEqual(self.browser.text("#sandwich-name"), "shop_wait_for_work")
        self.browser.press("Escape")
        self.assertEqual(self.browser.run("return window.stacksnap.model.wait"), -1)

    def test_link_to_a_wait(self):
        """Two modules have a function of the same name."""
        other = self.path("libother.so")
        _, build_id = build_library(other)
        d = Description()
        process = d.process()
        modules = [d.module(process, self.library, self.build_id),
                   d.module(process, other, build_id, bias=0x7e0000000000)]
        thread = d.thread(process, 100, "main")
        for tick in range(10):
            d.tick()
            d.sample(thread, self.stack_of(d, modules[tick < 3], "wait_for_work", "start"), "S",
                     call=202, argument=0x1000)
        path = self.path("link.html")
        self.report("-f", "html", "-o", path, d.write(self.path("link.ss")))
        for row, samples in ((1, 7), (2, 3)):
            self.show(path)
            self.browser.press("5")
            self.assertEqual([cells[4] for cells in self.rows("#waits")],
                             ["shop_wait_for_work"] * 2)
            self.browser.click("#waits tr:nth-child(%d) td:nth-child(3) button" % row)
            self.assertEqual(self.total(), samples)
            link = self.link()
            self.show(path)
            self.assertEqual(self.total(), 10)
            self.show(path, link)
            self.assertEqual(self.total(), samples)

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

    def copied(self):
        """What Ctrl+C copies; None: the browser decides."""
        self.browser.run("window.copied = null; document.addEventListener('copy', (event) => {"
                         "if (event.defaultPrevented) window.copied ="
                         " event.clipboardData.getData('text/plain'); }, { once: true });")
        self.browser.press("c", modifier="Control")
        return self.browser.run("return window.copied")

    def test_copy(self):
        """The stack of the selected frame, innermost first, as far as it goes."""
        self.assertIsNone(self.copied())  # nothing is selected
        stack = ["shop_%s (libshop.so)\n" % name for name in ("parse", "serve", "start")]
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.assertEqual(self.copied(), "".join(stack))
        self.browser.press("i")
        self.browser.click_at(*self.frame("shop_parse")[:2])
        self.assertEqual(self.copied(), "shop_hash (libshop.so)\n" + stack[0])
        self.browser.press("i", "2")
        self.browser.click("#calls tbody tr:nth-child(2)")
        self.assertEqual(self.copied(), "shop_wait_for_work (libshop.so)\n" + stack[2])
        self.browser.run("getSelection().selectAllChildren(document.getElementById('title'))")
        self.assertIsNone(self.copied())
        self.browser.run("getSelection().removeAllRanges()")
        self.browser.press("3")  # no frame
        self.assertIsNone(self.copied())

    def test_copied_names_are_one_line(self):
        """They may be pasted into a shell."""
        def change(data):
            data["functions"]["name"] = ["a\n\u202eb\u2028\x1bc\x00"] * len(
                data["functions"]["name"])
            return data

        path = self.path("copied.html")
        replace_data(self.page(), change, path)
        self.show(path)
        self.browser.press("2")
        self.browser.click("#calls tbody tr:nth-child(1)")
        self.assertEqual(self.copied(), "a??b??c? (libshop.so)\n")

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

    def test_hide_native(self):
        """Functions of a runtime have the colour of their language, and can be shown alone. There
        is no switch without them."""
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 100, "main")
        stack = d._add("stack", ROOT, "%d:%d" % (module, self.at["hash"]),
                       "python:inner:/srv/b.py:7", "python:outer:/srv/a.py:41",
                       "%d:%d" % (module, self.at["serve"]), "%d:%d" % (module, self.at["start"]))
        d.tick()
        d.sample(thread, stack, "R")
        path = self.path("python.html")
        self.report("-f", "html", "-o", path, d.write(self.path("python.ss")))
        self.show(path)
        whole = [["all"], ["shop_start"], ["outer"], ["inner"], ["shop_hash"]]
        self.assertEqual(self.labels(), whole)
        self.browser.click("#native")
        self.assertTrue(self.pressed("native"))
        self.assertEqual(self.labels(), [["all"], ["outer"], ["inner"]])
        self.browser.press("n")
        self.assertEqual(self.labels(), whole)
        colors = self.browser.run(
            "const m = window.stacksnap.model; const p = palette();"
            "return m.names.map((name, f) => [name, m.moduleName(f), m.color(p, f)])")
        found = {name: (module, color) for name, module, color in colors}
        self.assertEqual(found["inner"][0], "b.py", found)
        self.assertIn("hsl(215", found["inner"][1], found)
        self.assertIn("hsl(215", found["outer"][1], found)
        self.assertNotIn("hsl(215", found["shop_start"][1], found)
        self.show_recursion()
        self.assertFalse(self.browser.run(
            "return document.getElementById('native').checkVisibility()"))

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
        for link in ("#view=markers&wait=nothing", "#view=constructor&show=__proto__&threads=1/2,/&time=9-1",
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


if __name__ == "__main__":
    main()
