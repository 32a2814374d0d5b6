"""dlchain: a call through 200 libraries that were loaded with dlopen."""
# ctest: quick

import os
import resource

from harness import (EndToEnd, MAIN_STACK, MODES, Named, Snapshot, TARGETS, THREAD_END,
                     main)

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

    def limited(self, pid, soft, hard):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        result = self.run_tool("-f", "json", pid, preexec_fn=limit)
        return Snapshot(result)

    def test_limit_of_open_files(self):
        """One file is open for each module: the limit is raised, or the output says so."""
        target = self.start("dlchain", 200)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        snapshot = self.limited(target.pid, 60, hard)
        self.assert_stack(snapshot, "chain", STACK)
        self.assertEqual([m["problem"] for m in snapshot.modules if m["problem"]], [])
        snapshot = self.limited(target.pid, 60, 60)
        self.assert_stack(snapshot, "chain", STACK)
        problems = {module["problem"] for module in snapshot.modules}
        self.assertEqual(problems, {None, "too many open files (ulimit -n)"})

    def test_modules(self):
        """Every mapped module is listed once, in order of address."""
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
