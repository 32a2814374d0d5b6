#!/bin/sh
# Creates the seeds in corpus/runtimes and corpus/saved from programs in the runtimes that are
# given: runtimes.sh SEED_RUNTIMES NAME=PROGRAM..., where the name of a seed begins with python,
# java or node. For instance
#	runtimes.sh build/release/tests/fuzz/seed_runtimes python311=/usr/bin/python3.11
set -eu
cd "$(dirname "$0")/corpus"
mkdir -p runtimes saved
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
maker=$1
shift

cat >"$made/locks.py" <<'END_OF_FILE'
import threading, time
lock, rlock = threading.Lock(), threading.RLock()
def gen(n):
    yield n
    time.sleep(600)
def want():
    with lock:
        pass
def spin():
    for _ in map(lambda x: list(gen(x)), [1]):
        pass
def hold_ü():
    with lock, rlock:
        for f in want, rlock.acquire, spin:
            threading.Thread(target=f, daemon=True).start()
        time.sleep(600)
hold_ü()
END_OF_FILE
cat >"$made/tasks.py" <<'END_OF_FILE'
import asyncio
async def leaf(event):
    await event.wait()
async def middle(event):
    await asyncio.gather(leaf(event), asyncio.wait_for(leaf(event), 500))
async def spin():
    import time
    await asyncio.sleep(0.3)
    time.sleep(600)
async def main():
    event = asyncio.Event()
    tasks = [asyncio.ensure_future(f) for f in (middle(event), asyncio.sleep(400), spin())]
    await asyncio.shield(tasks[0])
asyncio.run(main())
END_OF_FILE
cat >"$made/Locks.java" <<'END_OF_FILE'
import java.util.concurrent.locks.ReentrantLock;
public class Locks {
	static final Object monitor = new Object();
	static final ReentrantLock lock = new ReentrantLock();
	static int work(int n) { return n % 7 + inner(n); }
	static int inner(int n) { return n % 5; }
	static void want() { synchronized (monitor) { } }
	static void hold() {
		synchronized (monitor) {
			lock.lock();
			new Thread(Locks::want).start();
			new Thread(lock::lock).start();
			int sum = 0;
			for (int i = 0; ; i++) {
				sum += work(i);
				if (sum > 1 << 30) { sum = 0; }
			}
		}
	}
	public static void main(String[] args) { hold(); }
}
END_OF_FILE
cat >"$made/calls.js" <<'END_OF_FILE'
'use strict';
class Shop { serve(n) { return [n].map((x) => this.wait(x)); } wait(n) { const e = Date.now() + n; while (Date.now() < e) { inner(n); } } }
function inner(n) { return add(n) * 2; }
function add(n) { return n + 1; }
new Shop().serve(600000);
END_OF_FILE

# seed NAME FLAGS SUFFIX COMMAND...
seed() {
	name=$1 flags=$2 suffix=$3
	shift 3
	"$@" >"$made/log" 2>&1 &
	pid=$!
	sleep 3
	timeout 100 "$maker" "$pid" "$flags" "runtimes/$name$suffix" "$made/saved" >"$made/text" 2>"$made/error" || cat "$made/error"
	tail -n 1 "$made/error"
	cp "$made/saved" "saved/$name$suffix"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
}

for one; do
	name=${one%%=*} program=${one#*=}
	case $name in
	python*)
		seed "$name" 0 "" "$program" -S "$made/locks.py"
		seed "$name" 0 -tasks "$program" -S "$made/tasks.py"
		seed "$name" 1 -recording "$program" -S "$made/locks.py"
		;;
	java*)
		"${JAVAC:-javac}" --release 8 -nowarn -d "$made" "$made/Locks.java" 2>"$made/log"
		seed "$name" 0 "" "$program" -Xshare:off -XX:+UseSerialGC -Xmx64m -cp "$made" Locks
		;;
	node*) seed "$name" 0 "" "$program" "$made/calls.js" ;;
	esac
done
