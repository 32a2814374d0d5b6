/*
 * The data of the page: decoding, and counting the samples of a selection.
 * Strings of a recording, such as names, are only ever inserted as text.
 */
"use strict";

/* The states of threads, by the letters of proc_pid_stat(5). color: of the style sheet. */
const STATES = [
	{ letters: "R", name: "running", color: "R" },
	{ letters: "", name: "waiting for a CPU", color: "ready" }, /* a part of R, see runReady */
	{ letters: "D", name: "uninterruptible", color: "D" },
	{ letters: "SI", name: "sleeping", color: "S" },
	{ letters: "Tt", name: "stopped", color: "T" },
	{ letters: "", name: "other", color: "other" },
];
const RUNNING = STATES.findIndex(({ name }) => name === "running");
const READY = STATES.findIndex(({ name }) => name === "waiting for a CPU");
const SLEEPING = STATES.findIndex(({ name }) => name === "sleeping");

function stateIndex(letter) {
	const at = STATES.findIndex(({ letters }) => letters.includes(letter));
	return at >= 0 ? at : STATES.length - 1;
}

async function decode(text) {
	const binary = atob(text.trim());
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return JSON.parse(await new Response(stream).text());
}

/* Changes that are not about one function. */
const TOGGLES = ["recursion", "native"];

class Model {
	constructor(data) {
		this.data = data;
		if (data.unit) unit.name = data.unit;
		this.names = data.functions.name.map(String);
		this.moduleOf = Int32Array.from(this.groupPlaces(data.functions.places, [...data.functions.module]));
		this.modules = data.modules;
		/* functions of runtimes: their language and file; all others are native */
		this.runtimes = new Map(data.functions.runtimes.map(([f, kind, file]) => [f, { kind, file }]));
		this.threads = data.threads;
		this.processes = data.processes;
		const collator = this.names.map((name, i) => [name, i]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
		this.rank = new Int32Array(this.names.length);
		collator.forEach((pair, at) => { this.rank[pair[1]] = at; });
		this.recorded = this.recordedTree();
		this.lines = new Lines(data, this.recorded);
		this.buildTicks();
		this.buildRuns();
		this.waits = new Waits(this);
		this.wait = -1; /* the row of waits whose samples are counted; -1: all samples */
		this.window = null; /* [from, to] in microseconds; null: all */
		this.chosen = null; /* set of threads; null: all */
		this.shows = this.firstClasses(); /* the last class of samples that is counted */
		this.matches = null; /* by function: whether a search finds it; null: no search */
		this.onlyMatches = true;
		this.changes = []; /* of the tree: { kind, f } */
		this.shapedTree = null;
		this.inverted = false;
		this.only = -1; /* the recording whose samples are counted; -1: all */
		this.compares = false;
	}

	/* Work is of interest first: idle threads hide it. */
	firstClasses() {
		const found = [ON_CPU, WAITING, IDLE].filter((one) => this.runClass.includes(one));
		return this.isSnapshot ? Math.max(WAITING, found[0] || 0) : found[0] || 0;
	}

	/* Merges addresses without symbols by module, as functions after the real ones. */
	groupPlaces(places, moduleOf) {
		const groups = new Map();
		for (const [f, prefix] of places) {
			const key = `${moduleOf[f]} ${prefix}`;
			if (!groups.has(key)) groups.set(key, { prefix, module: moduleOf[f], members: [] });
			groups.get(key).members.push(f);
		}
		this.functions = this.names.length;
		this.groupOf = new Int32Array(this.functions).fill(-1);
		for (const { prefix, module, members } of groups.values()) {
			if (members.length < 2) continue;
			for (const f of members) this.groupOf[f] = this.names.length;
			this.names.push(`${prefix} (no symbols: ${count(members.length)} addresses)`);
			moduleOf.push(module);
		}
		return moduleOf;
	}

	recordedTree() {
		const { parent, function: func } = this.data.nodes;
		return new Tree(Int32Array.from(parent, (distance, i) => i - distance), Int32Array.from(func), this.rank);
	}

	buildTicks() {
		this.ticks = this.data.recordings.map((recording) => {
			const times = new Float64Array(recording.ticks.length);
			let now = 0;
			recording.ticks.forEach((step, i) => { now += step; times[i] = now; });
			return times;
		});
		this.gaps = this.ticks.map((times, i) => findGaps(times, this.data.recordings[i].period));
		this.end = 1;
		for (const times of this.ticks) {
			/* the last tick lasts as long as the average one */
			const n = times.length;
			const step = n > 1 ? (times[n - 1] - times[0]) / (n - 1) : 1;
			if (n) this.end = Math.max(this.end, times[n - 1] + step);
		}
	}

	buildRuns() {
		const runs = this.data.runs;
		const count = runs.thread.length;
		this.runThread = new Int32Array(count);
		this.runTick = new Int32Array(count);
		this.runCount = Int32Array.from(runs.count);
		this.runStack = Int32Array.from(runs.stack);
		this.runState = new Uint8Array(count);
		const states = new Map([...new Set(runs.state)].map((letter) => [letter, stateIndex(letter)]));
		this.runClass = new Uint8Array(count);
		/* the share of a run in state R that waited for a CPU */
		this.runReady = Float32Array.from(runs.ready, (thousandths) => thousandths / 1000);
		/* of traces: the nesting of a scope, its duration in microseconds, what it counts */
		this.runDepth = runs.depth ? Int32Array.from(runs.depth) : null;
		this.runDuration = runs.duration ? Float64Array.from(runs.duration, (ns) => ns / 1000) : null;
		this.runWeight = runs.weight ? Float64Array.from(runs.weight) : null;
		this.runProbe = runs.probe ? Int32Array.from(runs.probe, (probe) => probe - 1) : null;
		this.runsOf = this.threads.map(() => [0, 0]);
		const idle = new IdleRule(this);
		let thread = 0;
		let tick = 0;
		for (let i = 0; i < count; i++) {
			if (runs.thread[i]) tick = 0;
			thread += runs.thread[i];
			tick += runs.tick[i];
			this.runThread[i] = thread;
			this.runTick[i] = tick;
			tick += this.runCount[i];
			this.runState[i] = states.get(runs.state[i]);
			this.runClass[i] = idle.classOf(this.runState[i], runs.wait[i], this.lines.nodeOf[this.runStack[i]]);
			if (this.runsOf[thread][1] === 0) this.runsOf[thread][0] = i;
			this.runsOf[thread][1] = i + 1;
			if (this.runDuration) this.end = Math.max(this.end, this.runSpan(i)[1]);
		}
	}

	/* A single snapshot has no duration. */
	get isSnapshot() {
		return this.end <= 1;
	}

	recordingOf(thread) {
		return this.processes[this.threads[thread].process].recording;
	}

	isEvent(run) {
		return this.runProbe !== null && this.runProbe[run] >= 0;
	}

	/* The innermost scope of a thread at a time, in microseconds; -1: none. near: tolerance. */
	scopeAt(thread, time, near) {
		let found = -1;
		for (let i = this.runsOf[thread][0]; i < this.runsOf[thread][1]; i++) {
			const [from, to] = this.runSpan(i);
			if (this.isEvent(i) && from <= time + near && time <= to + near && (found < 0 || this.runDepth[i] >= this.runDepth[found])) found = i;
		}
		return found;
	}

	/* The time from the first tick of a run to the one after its last. */
	runSpan(run) {
		const times = this.ticks[this.recordingOf(this.runThread[run])];
		const last = this.runTick[run] + this.runCount[run];
		if (this.isEvent(run)) return [times[this.runTick[run]], times[this.runTick[run]] + this.runDuration[run]];
		return [times[this.runTick[run]], last < times.length ? times[last] : this.end];
	}

	/* The gaps of a recording in a time window, clipped to it: [[from, to], ...] */
	gapsIn(recording, from, to) {
		const { begins, ends } = this.gaps[recording];
		const found = [];
		for (let i = lowerBound(ends, from); i < begins.length && begins[i] < to; i++)
			found.push([Math.max(begins[i], from), Math.min(ends[i], to)]);
		return found;
	}

	/* The ticks of a recording in the selected window, as [from, to). */
	tickRange(recording) {
		const times = this.ticks[recording];
		if (!this.window) return [0, times.length];
		return [lowerBound(times, this.window[0]), lowerBound(times, this.window[1])];
	}

	/* The recorded call tree with all changes. */
	get shaped() {
		if (!this.shapedTree) {
			this.shapedTree = this.changes.reduce((tree, { kind, f }) =>
				changedTree(tree, kind, this.isOf(f)), this.recorded);
			this.backward = null;
		}
		return this.shapedTree;
	}

	/* Returns whether a function is f, or a member of the group f; -1: or native. */
	isOf(f) {
		if (f < 0) return (func) => !this.runtimes.has(func);
		return f < this.functions ? (func) => func === f : (func) => this.groupOf[func] === f;
	}

	/* kind: see CHANGES. f: the function; -1 if it is about all. */
	change(kind, f) {
		this.changes.push({ kind, f });
		this.shapedTree = null;
	}

	undoChange(index) {
		this.changes.splice(index, 1);
		this.shapedTree = null;
	}

	isChosen(thread) {
		return !this.chosen || this.chosen.has(thread);
	}

	/* Calls visit(run, samples) for the runs of the selected threads, in the selected time. */
	eachSample(visit) {
		const ranges = this.ticks.map((_, i) => this.tickRange(i));
		for (let t = 0; t < this.threads.length; t++) {
			if (!this.isChosen(t) || (this.only >= 0 && this.only !== this.recordingOf(t))) continue;
			const [from, to] = ranges[this.recordingOf(t)];
			for (let i = this.runsOf[t][0]; i < this.runsOf[t][1]; i++) {
				const begin = this.runTick[i];
				const ticks = Math.min(begin + this.runCount[i], to) - Math.max(begin, from);
				if (ticks > 0) visit(i, this.runWeight ? this.runWeight[i] : ticks);
			}
		}
	}

	/* The mean time from tick to tick, in microseconds, in the recording of a thread. */
	tickLength(thread) {
		const times = this.ticks[this.recordingOf(thread)];
		return times.length > 1 ? (times[times.length - 1] - times[0]) / (times.length - 1) : 0;
	}

	/* Whether the changes of the tree and the search leave a stack in it. */
	isCounted(stack) {
		const { place } = this.shaped;
		const node = place ? place[this.lines.nodeOf[stack]] : this.lines.nodeOf[stack];
		return node >= 0 && (!this.inside || this.inside[node] > 0);
	}

	/* Counts the selected samples at each node of the current tree, and by class. */
	recount() {
		const { self, nodeOf } = this.lines;
		this.lines.clear();
		this.byClass = [0, 0, 0];
		this.ready = 0; /* samples of threads that waited for a CPU */
		this.eachSample((i, n) => {
			if (this.wait >= 0 && this.waits.rowOf[i] !== this.wait) return;
			this.byClass[this.runClass[i]] += n;
			this.ready += n * this.runReady[i];
			if (this.runClass[i] <= this.shows) self[this.runStack[i]] += n;
		});
		const tree = this.shaped;
		tree.self.fill(0);
		for (let call = 0; call < this.lines.count; call++) {
			if (!self[call]) continue;
			const node = tree.place ? tree.place[nodeOf[call]] : nodeOf[call];
			if (node >= 0) tree.self[node] += self[call];
			else self[call] = 0;
		}
		this.filter(tree);
		tree.addUp();
		return this.tree();
	}

	/* Counts, and adds to the tree the totals in the second of two recordings if they are
	   compared. */
	recountBoth() {
		this.only = 1;
		const second = this.compares ? this.recount().total.slice() : null;
		this.only = -1;
		this.shaped.second = null; /* if it is inverted, that of the other tree */
		return Object.assign(this.recount(), { second });
	}

	/* Counts the samples with a matching function, and drops the others if that is wanted. */
	filter(tree) {
		const { matches } = this;
		this.inside = null; /* by node: whether a search leaves it */
		this.unfiltered = tree.self.reduce((sum, n) => sum + n, 0);
		this.matched = this.unfiltered;
		if (!matches) return;
		const inside = new Uint8Array(tree.count);
		for (let i = 1; i < tree.count; i++) {
			inside[i] = inside[tree.parent[i]] | matches[tree.func[i]];
			if (!inside[i]) this.matched -= tree.self[i];
		}
		this.matched -= tree.self[0];
		if (!this.onlyMatches) return;
		this.inside = inside;
		for (let i = 0; i < tree.count; i++) if (!inside[i]) tree.self[i] = 0;
		const { self, nodeOf } = this.lines;
		for (let call = 0; call < this.lines.count; call++) {
			const node = tree.place ? tree.place[nodeOf[call]] : nodeOf[call];
			if (self[call] && !inside[node]) self[call] = 0;
		}
	}

	/* The tree to show, with the samples that are counted. */
	tree() {
		const tree = this.shaped;
		if (!this.inverted) return tree;
		if (!this.backward) this.backward = reversedTree(tree, this.endsIn(tree), tree.count);
		const back = this.backward;
		back.self.fill(0);
		for (let i = 0; i < tree.count; i++) if (tree.self[i]) back.self[back.from[i]] += tree.self[i];
		back.addUp();
		return back;
	}

	/* Returns whether stacks end at a node, in any selection. */
	endsIn(tree) {
		const ends = new Uint8Array(tree.count);
		for (const stack of this.runStack) {
			const node = this.lines.nodeOf[stack];
			const to = tree.place ? tree.place[node] : node;
			if (to >= 0) ends[to] = 1;
		}
		return (node) => ends[node];
	}

	/* The tree of what a function calls; recursion is below its outermost call. */
	callees(f) {
		const tree = changedTree(this.shaped, "focus", this.isOf(f));
		for (let call = 0; call < this.lines.count; call++) {
			const node = tree.place[this.lines.nodeOf[call]];
			if (node >= 0) tree.self[node] += this.lines.self[call];
		}
		tree.addUp();
		return tree;
	}

	/* The tree of callers of a function, up to the outermost ones. */
	callers(f) {
		const tree = this.shaped;
		const is = this.isOf(f);
		const fresh = f < this.functions ? tree.fresh : tree.freshOfGroups(this.groupOf, this.names.length);
		const back = reversedTree(tree, (node) => is(tree.func[node]) && fresh[node] && tree.total[node] > 0, 0);
		for (let i = 1; i < tree.count; i++) if (back.from[i]) back.self[back.from[i]] += tree.total[i];
		back.addUp();
		return back;
	}

	/* Samples by function and by group: [self, total]. */
	byFunction() {
		const tree = this.shaped;
		const self = new Float64Array(this.names.length);
		const total = new Float64Array(this.names.length);
		const { groupOf, functions } = this;
		const freshGroup = this.names.length > functions ? tree.freshOfGroups(groupOf, this.names.length) : null;
		for (let i = 1; i < tree.count; i++) {
			const f = tree.func[i];
			const group = groupOf[f];
			if (tree.fresh[i]) total[f] += tree.total[i];
			self[f] += tree.self[i];
			if (group < 0) continue;
			if (freshGroup[i]) total[group] += tree.total[i];
			self[group] += tree.self[i];
		}
		return [self, total];
	}

	/* Whether a table lists a function: addresses without symbols as a group, except in a
	   search. */
	isListed(f, searching) {
		return f < this.functions ? searching || this.groupOf[f] < 0 : !searching;
	}

	color(colors, f) {
		const runtime = this.runtimes.get(f);
		return runtime ? colors.runtime(runtime.kind, f) : colors.frame(this.moduleOf[f], f);
	}

	moduleName(f) {
		const runtime = this.runtimes.get(f);
		if (runtime) return runtime.file ? baseName(runtime.file) : runtime.kind;
		const module = this.moduleOf[f];
		return module < 0 ? "" : baseName(this.modules[module].path);
	}
}

/* The share of a node in each of the two recordings that are compared. */
function sharesOf({ total, second }, node) {
	return [(total[node] - second[node]) / (total[0] - second[0] || 1), second[node] / (second[0] || 1)];
}

/* A longer gap between ticks is drawn as one. */
const GAP_PERIODS = 8;

function findGaps(times, period) {
	const begins = [];
	const ends = [];
	for (let i = 1; period && i < times.length; i++) {
		if (times[i] - times[i - 1] <= GAP_PERIODS * period) continue;
		begins.push(times[i - 1] + period);
		ends.push(times[i]);
	}
	return { begins, ends };
}

function lowerBound(times, value) {
	let low = 0;
	let high = times.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (times[middle] < value) low = middle + 1;
		else high = middle;
	}
	return low;
}

function baseName(path) {
	const at = path.lastIndexOf("/");
	return at >= 0 && at + 1 < path.length ? path.slice(at + 1) : path;
}

/* Returns a predicate for the search text; null if it is empty. */
function matcher(text) {
	const pattern = /^\/(.+)\/$/.exec(text);
	if (pattern) {
		try {
			const expression = new RegExp(pattern[1], "i");
			return (name) => expression.test(name);
		} catch {
			return () => false;
		}
	}
	const wanted = text.toLowerCase();
	return wanted ? (name) => name.toLowerCase().includes(wanted) : null;
}
