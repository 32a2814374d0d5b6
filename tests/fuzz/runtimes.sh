#!/bin/sh
# Creates seeds in corpus/runtimes, recording and report from programs in the runtimes that are
# given: runtimes.sh BUILD-DIRECTORY NAME=PROGRAM..., where the name of a seed begins with python,
# java, node or go (any program of Go). For instance
#	runtimes.sh /tmp/stacksnap/build/release python311=/usr/bin/python3.11
# BUILD-DIRECTORY/tests/fuzz/seed_runtimes is a target of its own.
set -eu
build=$1
shift
cd "$(dirname "$0")/corpus"
mkdir -p runtimes recording report
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

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
	sleep 6
	timeout 100 "$build/tests/fuzz/seed_runtimes" "$pid" "$flags" "runtimes/$name$suffix" >"$made/text" 2>"$made/error" || cat "$made/error"
	tail -n 1 "$made/error"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
}

# recordings NAME COMMAND...: of two snapshots and of a few ticks, uncompressed
recordings() {
	name=$1
	shift
	"$@" >"$made/log" 2>&1 &
	pid=$!
	sleep 6
	"$build/stacksnap" -i 1s -c 2 -f recording --goroutines=all -o "$made/$name-series" "$pid" || true
	"$build/stacksnap" record -d 300ms -o "$made/$name-ticks" "$pid" || true
	kill "$pid"
	wait "$pid" 2>/dev/null || true
	for file in "$name-series" "$name-ticks"; do
		../uncompress.py "$made/$file" "recording/$file"
		cp "recording/$file" "report/$file"
	done
}

for one; do
	name=${one%%=*} program=${one#*=}
	case $name in
	python*)
		seed "$name" 0 "" "$program" -S "$made/locks.py"
		seed "$name" 0 -tasks "$program" -S "$made/tasks.py"
		seed "$name" 9 -recording "$program" -S "$made/locks.py"
		recordings "$name" "$program" -S "$made/tasks.py"
		;;
	java*)
		"${JAVAC:-javac}" --release 8 -nowarn -d "$made" "$made/Locks.java" 2>"$made/log"
		seed "$name" 0 "" "$program" -Xshare:off -XX:+UseSerialGC -Xmx64m -cp "$made" Locks
		if "$program" -XX:+UseZGC -version 2>"$made/log"; then
			seed "$name" 0 -zgc "$program" -Xshare:off -XX:+UseZGC -Xmx64m -cp "$made" Locks
		fi
		recordings "$name" "$program" -Xshare:off -XX:+UseSerialGC -Xmx64m -cp "$made" Locks
		;;
	node*) seed "$name" 0 "" "$program" "$made/calls.js" ;;
	go*) recordings "$name" "$program" ;;
	esac
done
