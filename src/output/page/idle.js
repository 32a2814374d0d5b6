/*
 * Which samples are idle: threads that sleep until there is work. It is known by the system call,
 * and for futexes by the functions on the stack: a condition variable, but not one that a lock
 * is made of. What is not known to be idle counts as a wait for something else.
 */

const ON_CPU = 0; /* classes of samples */
const WAITING = 1;
const IDLE = 2;

const IDLE_CALLS = new Set(["accept", "accept4", "clock_nanosleep", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"io_getevents", "io_pgetevents", "io_uring_enter", "mq_timedreceive", "nanosleep", "pause", "poll", "ppoll",
	"pselect6", "rt_sigsuspend", "rt_sigtimedwait", "select", "_newselect", "wait4", "waitid"]);
const CONDITION = /cond_(clock|timed)?wait|condition_variable|sem_(clock|timed)?wait/;
const LOCK = /(?<![bc])lock|mutex|latch|acquire|take_gil/i;
const LOCK_DEPTH = 12; /* frames to look at */

class IdleRule {
	constructor(names, systemCalls, tree) {
		this.tree = tree;
		this.known = new Map(); /* by node: whether a futex wait there is idle */
		this.calls = systemCalls.map((name) => IDLE_CALLS.has(name));
		this.futex = systemCalls.map((name) => name === "futex");
		/* without arguments, which may name a mutex */
		const start = names.map((name) => name.split(/[(<]/, 1)[0]);
		this.isCondition = start.map((name) => CONDITION.test(name));
		this.isLock = start.map((name, f) => !this.isCondition[f] && LOCK.test(name));
	}

	/* wait: index of the system call + 1; 0: unknown. */
	classOf(state, wait, node) {
		if (state === RUNNING) return ON_CPU;
		if (state !== SLEEPING || !wait) return WAITING;
		if (this.calls[wait - 1]) return IDLE;
		if (!this.futex[wait - 1]) return WAITING;
		if (!this.known.has(node)) this.known.set(node, this.waitsForWork(node));
		return this.known.get(node) ? IDLE : WAITING;
	}

	waitsForWork(node) {
		const { parent, func } = this.tree;
		let condition = false;
		for (let at = node, depth = 0; at > 0 && depth < LOCK_DEPTH; at = parent[at], depth++) {
			if (this.isLock[func[at]]) return false;
			if (this.isCondition[func[at]]) condition = true;
		}
		return condition;
	}
}
