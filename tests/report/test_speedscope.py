"""stacksnap report -f speedscope, loaded into the published page of speedscope (npm package
"speedscope") in a headless Chromium, from a local server.

Debian packages: chromium, chromium-driver."""
# ctest: real release-only

import http.server
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import browser  # noqa: E402
from file_server import LocalServer  # noqa: E402
import npm  # noqa: E402
from recordings import PERIOD, WALL, Description, ReportTest  # noqa: E402

TEXT = "return document.body.innerText"


class Server(LocalServer):
    """Serves the page of speedscope and one profile."""

    def __init__(self, directory, profile):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=directory)

            def do_GET(self):
                if self.path != "/profile.json":
                    return super().do_GET()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(profile)
                return None

            def log_message(self, *_):
                pass

        super().__init__(Handler)


class Speedscope(ReportTest):
    def test_file(self):
        data = json.loads(self.report("-f", "speedscope", self.shop()).stdout)
        frames = [frame["name"] for frame in data["shared"]["frames"]]
        self.assertEqual(len(data["profiles"]), 2)
        worker = data["profiles"][data["activeProfileIndex"]]
        self.assertEqual((worker["type"], worker["unit"]), ("sampled", "nanoseconds"))
        self.assertEqual(worker["name"], "worker 101 (shop 100)")
        self.assertEqual([[frames[f] for f in stack] for stack in worker["samples"]], [
            ["shop_start", "shop_wait_for_work"],
            ["shop_start", "shop_serve", "shop_parse", "shop_hash"],
            ["shop_start", "shop_wait_for_work"]])
        self.assertEqual(worker["weights"], [2 * PERIOD, 3 * PERIOD, 5 * PERIOD])
        self.assertEqual(worker["endValue"] - worker["startValue"], sum(worker["weights"]))

    def holes(self):
        """Twenty ticks are missed after the third one; at the fifth the thread sleeps."""
        if os.path.exists(self.path("holes.ss")):
            return self.path("holes.ss")
        d = Description()
        process = d.process()
        module = d.module(process, self.library, self.build_id)
        thread = d.thread(process, 1, "t")
        stack = self.stack_of(d, module, "hash")
        for tick in range(6):
            d.tick(missed=20 if tick == 3 else 0, step=21 * PERIOD if tick == 3 else None)
            d.sample(thread, stack, "S" if tick == 4 else "R")
        return d.write(self.path("holes.ss"))

    def test_time_without_samples(self):
        """Long gaps between ticks, and unselected samples, have an empty stack."""
        path = self.holes()
        for words, lengths in (([], [3, -20, 1, 1, 1]), (["--state=R"], [3, -20, 1, -1, 1])):
            data = json.loads(self.report("-f", "speedscope", *words, path).stdout)
            profile = data["profiles"][0]
            self.assertEqual(profile["weights"], [abs(n) * PERIOD for n in lengths])
            self.assertEqual(profile["samples"], [[0] if n > 0 else [] for n in lengths])
            self.assertEqual(profile["endValue"] - profile["startValue"], 26 * PERIOD)

    def table(self, *arguments, status=(0,), shows):
        """Returns the text that speedscope shows, and the rows of its table of functions."""
        page = os.path.join(npm.package("speedscope"), "dist", "release")
        server = Server(page, self.report("-f", "speedscope", *arguments, status=status).stdout)
        self.addCleanup(server.close)
        tab = browser.Browser(arguments=["--use-gl=angle", "--use-angle=swiftshader",
                                         "--enable-unsafe-swiftshader"])
        self.addCleanup(tab.close)
        tab.open("%s/index.html#profileURL=%s/profile.json" % (server.url, server.url))
        tab.wait(TEXT + ".includes(arguments[0])", "speedscope to show the first thread", shows)
        text = tab.run(TEXT)
        tab.run("[...document.querySelectorAll('div')].find(e => e.children.length < 2 &&"
                "e.textContent.includes('Sandwich')).click()")
        tab.wait(TEXT + ".includes('shop_hash')", "the table of functions")
        table = tab.run("return [...document.querySelectorAll('table tr')].map(r =>"
                        "[...r.cells].map(c => c.textContent.trim()))")
        errors = [entry for entry in tab.log() if entry["level"] == "SEVERE" and
                  "favicon" not in entry["message"]]
        self.assertEqual(errors, [])
        return text, {row[-1]: " ".join(row) for row in table if len(row) >= 3}

    def test_in_speedscope(self):
        why = browser.missing()
        if why:
            self.skipTest(why)
        text, rows = self.table(self.shop(), self.shop("two.ss", "beta", wall=WALL, pid=700),
                                shows="worker 101")
        self.assertIn("(1/4)", text.replace(" ", ""))
        self.assertIn("30.00ms (30%)", rows["shop_hash"])
        self.assertIn("70.00ms (70%)", rows["shop_wait_for_work"])
        _, rows = self.table(self.holes(), shows="t 1 (shop 100)")
        self.assertIn("60.00ms (100%)", rows["shop_hash"])  # of 260 ms, 200 not seen


if __name__ == "__main__":
    unittest.main(verbosity=2)
