"""In the default mode no blocking call of the target returns EINTR, not even one that has a
time limit: threads that sleep are read without a stop."""
# ctest: serial tries=1000 timeout=600

import os

from harness import EndToEnd, Snapshot, main

TRIES = int(os.environ.get("STACKSNAP_TRIES", "60"))


class Interruptions(EndToEnd):
    def count_returns(self, *options):
        """Calls that returned while snapshots were taken: name to (EINTRs, other returns);
        and the number of stacks that were not whole, by name."""
        target = self.start("eintr")
        partial = {}
        for _ in range(TRIES):
            snapshot = Snapshot(self.run_tool("--raw", "-f", "json", *options, target.pid,
                                              status=(0, 1)))
            for thread in snapshot.threads:
                if thread["end"] != "root":
                    partial[thread["name"]] = partial.get(thread["name"], 0) + 1
        status, output = target.finish()
        self.assertEqual(status, 0)
        calls = [line.split() for line in output.splitlines()]
        self.assertGreater(len([1 for call in calls if call[3] == "infinite"]), 40)
        self.assertGreater(len([1 for call in calls if call[3] == "finite"]), 8)
        return {name: (int(eintrs), int(others)) for name, eintrs, others, kind in calls
                if kind != "missing" and (eintrs, others) != ("0", "0")}, partial

    def test_default_mode(self):
        returned, partial = self.count_returns()
        self.assertEqual(returned, {})
        self.assertEqual(partial, {})

    def test_no_stop(self):
        returned, _ = self.count_returns("--mode=no-stop")
        self.assertEqual(returned, {})


if __name__ == "__main__":
    main()
