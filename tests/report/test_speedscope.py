"""stacksnap report -f speedscope, loaded into the real speedscope: its page as it is published
(npm package "speedscope"), in a headless Chromium, from a server on this machine.

Debian packages: chromium, chromium-driver."""
# ctest: release-only timeout=180

import http.server
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import browser  # noqa: E402
import npm  # noqa: E402
from recordings import PERIOD, WALL, ReportTest  # noqa: E402

TEXT = "return document.body.innerText"


class Server:
    """Serves the page of speedscope, and beside it one profile."""

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

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


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

    def test_in_speedscope(self):
        why = browser.missing()
        if why:
            self.skipTest(why)
        page = os.path.join(npm.package("speedscope"), "dist", "release")
        both = [self.shop(), self.shop("two.ss", "beta", wall=WALL, pid=700)]
        server = Server(page, self.report("-f", "speedscope", *both).stdout)
        self.addCleanup(server.close)
        tab = browser.Browser(arguments=["--use-gl=angle", "--use-angle=swiftshader",
                                         "--enable-unsafe-swiftshader"])
        self.addCleanup(tab.close)
        tab.open("%s/index.html#profileURL=%s/profile.json" % (server.url, server.url))
        tab.wait(TEXT + ".includes('worker 101')", "speedscope to show the first thread")
        self.assertIn("(1/4)", tab.run(TEXT).replace(" ", ""))
        tab.run("[...document.querySelectorAll('div')].find(e => e.children.length < 2 &&"
                "e.textContent.includes('Sandwich')).click()")
        tab.wait(TEXT + ".includes('shop_wait_for_work')", "the table of functions")
        table = tab.run("return [...document.querySelectorAll('table tr')].map(r =>"
                        "[...r.cells].map(c => c.textContent.trim()))")
        rows = {row[-1]: row for row in table if len(row) >= 3}
        self.assertIn("30.00ms (30%)", " ".join(rows["shop_hash"]), table)
        self.assertIn("70.00ms (70%)", " ".join(rows["shop_wait_for_work"]), table)
        errors = [entry for entry in tab.log() if entry["level"] == "SEVERE" and
                  "favicon" not in entry["message"]]
        self.assertEqual(errors, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
