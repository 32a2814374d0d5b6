"""Some of the cases of docs/verdicts.md: what hang and snap say about them is the truth. With more than
one try, all cases run, and no healthy program may be called stuck."""
# ctest: real release-only timeout=300 tries=2

import concurrent.futures
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verdicts"))

from harness import main  # noqa: E402
from cases import ALL  # noqa: E402
import verdicts  # noqa: E402

TRIES = int(os.environ.get("STACKSNAP_TRIES", "1"))
SHORT = (
    "native / std::mutex in opposite order", "native / join under a lock that the thread needs",
    "native / two threads that join each other", "native / a thread that ended with a lock",
    "native / initialisation of a static variable that waits for a thread that uses it",
    "native / std::call_once that waits for a thread in call_once",
    "native / timed locks in a loop, in opposite order", "native / a timed lock in a loop whose holder reads a pipe",
    "healthy / C++: timed locks in opposite order that are released and tried again",
    "healthy / python: a lock with a time limit in a loop, whose holder computes",
    "healthy / python: RLocks in opposite order that are released and tried again",
    "native / a locked stream and a mutex", "native / std::atomic::wait",
    "native / a promise that a thread will set once it has the lock",
    "parallel / OpenMP: two locks in opposite order",
    "parallel / MPI: two ranks that both receive first",
    "healthy / C++: std::atomic::wait for what a client may ask for",
    "healthy / C++: std::atomic::wait in memory that processes share",
    "healthy / C++: a future that a signal handler sets",
    "python / two locks in opposite order", "python / a future that nobody completes",
    "processes / two file locks in opposite order", "healthy / python locks", "healthy / sleep",
    "processes / flock: a script that starts itself under its own lock",
    "python / join under a lock", "python / threads that join each other",
    "java / two monitors in opposite order beside four busy threads",
    "healthy / python: a file lock whose holder computes",
    "healthy / Go: a mutex held for 400 ms in turns", "healthy / Go: a mutex whose holder computes",
    "healthy / Java: a service whose main thread waits for a latch",
    "healthy / Java: a monitor held for 300 ms in turns",
    "healthy / Java: a monitor whose holder computes",
    "java / threads that join each other", "java / two classes that initialise each other",
    "asyncio / two asyncio locks in opposite order", "asyncio / a queue that nobody fills",
    "asyncio / a semaphore whose holders want one more, without a server",
    "asyncio / a timer beside tasks that wait for each other",
    "healthy / asyncio: a queue that a signal handler fills", "healthy / asyncio: a lock with a time limit",
    "healthy / asyncio: servers that wait for an event or a future that nobody sets",
    "go / a mutex whose holder waits for a channel", "go / a receive from a nil channel",
    "go / a server that does not answer", "servers / uwsgi: a request whose backend does not answer",
)


def is_short(case):
    return verdicts.name_of(case) in SHORT


class Cases(unittest.TestCase):
    def test_cases(self):
        wanted = [case for case in ALL if TRIES > 1 or is_short(case)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            results = pool.map(lambda case: verdicts.run(case, 1), wanted)
        for case, (result,) in zip(wanted, results):
            with self.subTest(case.title):
                if "skipped" in result:
                    continue
                told = verdicts.line_of(case, result)
                self.assertNotIn("failed", result, told)
                self.assertFalse(result.get("false"), told)
                if is_short(case):
                    rates = (result["hang"]["rate"], result["snap"]["rate"])
                    self.assertEqual(rates, ("named", "named"), told)
                    self.assertTrue(result["alarm_right"] or not case.alarm, told)


if __name__ == "__main__":
    main()
