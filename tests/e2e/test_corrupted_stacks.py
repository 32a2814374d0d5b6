"""corrupted_stacks: stacks that are corrupted, at unusual addresses, or have useless unwind tables.
Each must end at the damage, with the reason, and all others must be complete. Programs that this
stacksnap does not support are refused.
"""

import os
import shutil
import subprocess
import tempfile

from harness import (AnyOf, EndToEnd, LIMIT_S, MAIN_STACK, MODES, Named, TARGETS, THREAD_END,
                     main, task_states, wait_until)

BLOCK = [Named("poll"), "target_block", "block"]
HANDLER = BLOCK + ["on_signal", AnyOf("__restore_rt", None)]
END = ["thread_routine"] + THREAD_END
BAD_POINTER = HANDLER + [AnyOf(None, "data"), "call_pointer"] + END
COROUTINE = BLOCK + ["in_coroutine", "coroutine", Named("__start_context")]
WHOLE = {"bad-unmapped": BAD_POINTER, "bad-data": BAD_POINTER, "coroutine": COROUTINE,
         "mapped-stack": COROUTINE, "first-frame": BLOCK + ["first_frame", "nobody_called"],
         "sp-last": ["sp_last"] + END, "cfi-lowest": BLOCK + ["cfi_lowest"] + END,
         "corrupted_stack": MAIN_STACK}
CUT = {"cfi-loop": (BLOCK + ["cfi_loop"], "loop"),
       "cfi-far": (BLOCK + ["cfi_far"], "unreadable"),
       "sp-nowhere": (["sp_nowhere"], "unreadable")}


class Wrecked(EndToEnd):
    def test_stacks(self):
        target = self.start("corrupted_stacks")
        for mode in MODES + ("auto",):
            snapshot = self.snap(target.pid, mode=mode, status=(1, ))
            self.assertEqual(len(snapshot.threads), 13)
            whole, cut = dict(WHOLE), dict(CUT)
            if mode == "auto":  # without a stack, there is no proof that it is the same one
                whole.pop("sp-last")
                cut["sp-last"] = (["sp_last"], "register")
            for name, stack in whole.items():
                with self.subTest(mode=mode, thread=name):
                    self.assert_stack(snapshot, name, stack)
            for name, (stack, end) in cut.items():
                with self.subTest(mode=mode, thread=name):
                    self.assert_stack(snapshot, name, stack, end=end)

    def test_damaged_frames(self):
        """Frames inside the damage are right, those found beyond it are marked as heuristic, and
        the stack does not count as complete."""
        target = self.start("corrupted_stacks")
        snapshot = self.snap(target.pid, status=(1, ))
        for name, inner in (("smashed", BLOCK + ["smash", None]),
                            # its record says that it was called by itself, but no call leads there
                            ("self-frame", BLOCK + ["self_frame"])):
            with self.subTest(thread=name):
                thread = snapshot.thread(name)
                self.assertNotEqual(thread["end"], "root")
                frames = snapshot.frames(thread)
                names = [frame["symbol"] for frame in frames[1:len(inner)]]
                self.assertEqual(names, inner[1:])
                for frame in frames[len(inner):]:
                    self.assertIn(frame["source"], ("return-address", "cfi"))
                if len(frames) > len(inner):
                    self.assertEqual(frames[len(inner)]["source"], "return-address")

    def test_bad_pointers_have_no_module(self):
        target = self.start("corrupted_stacks")
        snapshot = self.snap(target.pid, status=(1, ))
        frame = snapshot.frames(snapshot.thread("bad-unmapped"))[5]
        self.assertEqual((frame["module"], frame["area"]), (None, None))
        text = self.run_tool("-a", target.pid, status=(1, )).stdout.decode()
        self.assertIn("[unmapped]+" + frame["pc"], text)


SPLIT = """
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline, no_split_stack)) static void innermost(void)
{
	poll(NULL, 0, -1);
	__asm__ volatile("");
}
__attribute__((noinline)) static void descend(int depth)
{
	char bytes[4096];
	__asm__ volatile("" : : "r"(bytes) : "memory");
	if (depth)
		descend(depth - 1);
	else
		innermost();
	__asm__ volatile("" : : "r"(bytes) : "memory");
}
static void *run(void *data)
{
	descend(3);
	return data;
}
int main(void)
{
	pthread_t thread;
	char byte;
	pthread_create(&thread, NULL, run, NULL);
	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) + 7;
}
"""


class SplitStacks(EndToEnd):
    def own_names(self, snapshot, tid):
        thread = snapshot.thread(tid)
        return thread, [frame["symbol"] for frame in snapshot.frames(thread)
                        if snapshot.module(frame)["path"].endswith("/split")]

    def test_stack_in_pieces(self):
        """One piece is copied. The reason says that the stack continues elsewhere."""
        directory = tempfile.mkdtemp(prefix="stacksnap-split-")
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "split")
        with open(path + ".c", "w") as file:
            file.write("#include <unistd.h>\n" + SPLIT)
        if subprocess.run([os.environ.get("CC", "cc"), "-O1", "-fsplit-stack", "-fuse-ld=gold",
                           "-pthread", "-o", path, path + ".c"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=LIMIT_S).returncode:
            self.skipTest("this compiler and linker make no split stacks")
        target = self.start_command([path])
        tid, = set(task_states(target.pid)) - {target.pid}
        wait_until(lambda: task_states(target.pid)[tid] == "S", "the thread to wait")
        snapshot = self.snap(target.pid, "--max-stack=256", status=(1, ))
        thread, names = self.own_names(snapshot, tid)
        self.assertEqual((thread["end"], names[-1]), ("unreadable", "__morestack"))
        self.assertIn("other memory", thread["reason"])
        self.assertRegex(snapshot.stderr, r"thread .*\b%d\b.*other memory" % tid)
        self.assertEqual(names[:2], ["innermost", "descend"])
        self.assertLessEqual(set(names), {"innermost", "descend", "run", "__morestack"})
        self.assertEqual(target.finish()[0], 7)


class Hostile(EndToEnd):
    def test_calls(self):
        """See targets/hostile_calls.c: no search takes more than its share, and what was not searched is
        guessed or missing, never certain."""
        if not os.path.exists(os.path.join(TARGETS, "hostile_calls")):
            self.skipTest("it is made for another processor")
        target = self.start("hostile_calls")
        snapshot = self.snap(target.pid, status=(1, ))
        self.assertIsNone(snapshot.data["problem"])  # it was in time
        hostile = [thread for thread in snapshot.threads if thread["name"] == "hostile"]
        self.assertEqual(len(hostile), 256)
        self.assertLessEqual({thread["end"] for thread in hostile}, {"guessed", "no-unwind-info"})
        for thread in hostile:
            self.assertLessEqual({frame["source"] for frame in snapshot.frames(thread)[1:]},
                                 {"return-address"})


if __name__ == "__main__":
    main()
