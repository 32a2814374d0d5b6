/*
 * Which samples are idle: threads that sleep until there is work. The system call tells it, and for
 * futexes the functions on the stack: a condition variable that is waited for near the outermost
 * function, as a worker does that waits for a job. Deep inside of a job it is a wait for a
 * lock or an answer, and so it is if a function says that it acquires a lock. What is not
 * known to be idle counts as a wait for something else.
 */

const ON_CPU = 0; /* classes of samples */
const WAITING = 1;
const IDLE = 2;

const IDLE_CALLS = new Set(["accept", "accept4", "clock_nanosleep", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"io_getevents", "io_pgetevents", "io_uring_enter", "mq_timedreceive", "nanosleep", "pause", "poll", "ppoll",
	"pselect6", "rt_sigsuspend", "rt_sigtimedwait", "select", "_newselect", "wait4", "waitid"]);
const CONDITION = /cond_(clock|timed)?wait|condition_variable|sem_(clock|timed)?wait/;
const LOCK = /(?<![bc]|dead)lock|mutex|latch|acquire|take_gil/i;
const WORKER_DEPTH = 8; /* limit of the callers of a wait for a job */

class IdleRule {
	constructor(model) {
		const { names, moduleOf } = model;
		const systemCalls = model.data.system_calls;
		this.tree = model.recorded;
		this.known = new Map(); /* by node: whether a futex wait there is idle */
		this.calls = systemCalls.map((name) => IDLE_CALLS.has(name));
		this.futex = systemCalls.map((name) => name === "futex");
		/* without arguments, which may name a mutex */
		const start = names.map((name) => name.split(/[(<]/, 1)[0]);
		this.isCondition = start.map((name) => CONDITION.test(name));
		/* why a stack is incomplete, in place of its outermost function */
		this.isEnd = names.map((name, f) => moduleOf[f] < 0 && name.startsWith("["));
		/* state R, but not on a CPU when the kernel sampled that */
		this.isReady = names.map((name, f) => this.isEnd[f] && name === "[runnable]");
		this.isLock = start.map((name, f) => !this.isCondition[f] && LOCK.test(name));
	}

	/* wait: index of the system call + 1; 0: unknown. */
	classOf(state, wait, node) {
		if (state === RUNNING) return this.isReady[this.tree.func[node]] ? WAITING : ON_CPU;
		if (state !== SLEEPING) return WAITING;
		/* workers of io_uring in the kernel have neither a stack nor a call */
		if (!wait) return node === 0 ? IDLE : WAITING;
		if (this.calls[wait - 1]) return IDLE;
		if (!this.futex[wait - 1]) return WAITING;
		if (!this.known.has(node)) this.known.set(node, this.waitsForJob(node));
		return this.known.get(node) ? IDLE : WAITING;
	}

	waitsForJob(node) {
		const { parent, func } = this.tree;
		let callers = 0;
		let condition = false;
		for (let at = node; at > 0 && callers <= WORKER_DEPTH; at = parent[at]) {
			if (this.isLock[func[at]] || this.isEnd[func[at]]) return false;
			callers = this.isCondition[func[at]] ? 0 : callers + 1;
			condition = condition || this.isCondition[func[at]];
		}
		return condition && callers <= WORKER_DEPTH;
	}
}
