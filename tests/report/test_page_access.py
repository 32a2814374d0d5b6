"""The page of stacksnap report -f html can be used with a keyboard and a screen reader, as far as
axe-core finds out: in each view, in both themes, and in a wide and a narrow window.

Debian packages: chromium, chromium-driver. The npm package axe-core, see npm.py."""
# ctest: real release-only

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import npm  # noqa: E402
from page import PageTest  # noqa: E402
from recordings import Description, main  # noqa: E402

CHECK = """
window.findings = null;
axe.run(document, { resultTypes: ["violations"], ...arguments[0] }).then((result) => {
  window.findings = result.violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
}, (error) => { window.findings = [String(error)]; });
"""


# A theme changes nothing but colours.
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}


class Access(PageTest):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(npm.package("axe-core"), "axe.min.js"), encoding="utf-8") as file:
            cls.axe = file.read()
        super().setUpClass()

    def check(self, where, theme):
        self.browser.settle()
        self.browser.run(CHECK, RULES[theme])
        [found] = self.browser.wait("return window.findings && [window.findings]", "axe-core")
        self.findings += ["%s: %s" % (where, finding) for finding in found]

    def check_views(self, path):
        self.findings = []
        for width, theme in ((1280, "light"), (1280, "dark"), (500, "light")):
            self.browser.size(width, 700)
            self.show(path, "")
            self.browser.run(self.axe)
            self.browser.press(*"t" * (1 if theme == "light" else 2))
            for view in self.browser.run("return VIEWS.filter((view) =>"
                                         "!document.getElementById('tab-' + view).hidden)"):
                self.browser.run("window.stacksnap.selectView(arguments[0])", view)
                self.check("%s, %s, %d pixels wide" % (view, theme, width), theme)
            self.browser.press("?")
            self.check("help, %s" % theme, theme)
        self.assertEqual(self.findings, [])

    def test_recording(self):
        self.check_views(self.page())

    def test_deadlock(self):
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        stack = self.stack_of(d, module, "wait_for_work", "start")
        threads = [d.thread(process, 100 + i, "worker-%d" % i) for i in range(8)]
        d.tick()
        for thread in threads:
            d.sample(thread, stack, "S", call=202, argument=0x1000)
        d.wait(threads[0], threads[1], "a_lock", deadlock=True)
        d.wait(threads[1], threads[0], "b_lock", deadlock=True)
        for thread in threads[2:]:
            d.wait(thread, threads[0], "b_lock")
        path = self.path("deadlock.html")
        self.report("-f", "html", "-o", path, d.write(self.path("deadlock.ss")))
        self.check_views(path)


if __name__ == "__main__":
    main()
