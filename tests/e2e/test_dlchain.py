"""dlchain: a call through 200 libraries that were loaded with dlopen."""

import os

from harness import EndToEnd, MAIN_STACK, MODES, Named, THREAD_END, TARGETS, main

STACK = [Named("poll")] + ["chain_%d" % index for index in reversed(range(200))] + [
    "thread_routine"] + THREAD_END


class Chain(EndToEnd):
    def test_each_frame_in_its_library(self):
        target = self.start("dlchain", 200)
        for mode in MODES:
            with self.subTest(mode=mode):
                snapshot = self.snap(target.pid, mode=mode)
                thread = self.assert_stack(snapshot, "chain", STACK)
                self.assert_stack(snapshot, "dlchain", MAIN_STACK)
                for step, frame in enumerate(snapshot.frames(thread)[1:201]):
                    path = snapshot.module(frame)["path"]
                    self.assertEqual(os.path.basename(path),
                                     "libchain_%d.so" % (199 - step))
                    self.assertRegex(snapshot.module(frame)["build_id"], "^[0-9a-f]{40}$")

    def test_modules(self):
        """All that are mapped are listed, once, in the order of their addresses."""
        target = self.start("dlchain", 200)
        with open("/proc/%d/maps" % target.pid) as file:
            mapped = {line.split(None, 5)[5].strip() for line in file
                      if "/" in line and ".so" in line}
        for mode in MODES:
            with self.subTest(mode=mode):
                modules = self.snap(target.pid, mode=mode).modules
                paths = [module["path"] for module in modules]
                self.assertEqual(len(paths), len(set(paths)))
                self.assertLessEqual(
                    {os.path.join(os.path.realpath(TARGETS), "chain/libchain_%d.so" % i)
                     for i in range(200)}, set(paths))
                self.assertLessEqual(mapped, set(paths))
                bases = [int(module["base"], 16) for module in modules]
                self.assertEqual(bases, sorted(bases))


if __name__ == "__main__":
    main()
