/*
 * The data of the page: decoding, the trees of calls, and counting samples of a selection.
 * Strings of a recording, such as names, are only ever inserted as text.
 */
"use strict";

const STATES = "RDSTO"; /* states with a colour of their own; O: all others */

function stateIndex(letter) {
	if (letter === "I") return 2; /* idle counts as sleeping */
	if (letter === "t") return 3;
	const at = STATES.indexOf(letter);
	return at >= 0 && at < 4 ? at : 4;
}

async function decode(text) {
	const binary = atob(text.trim());
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return JSON.parse(await new Response(stream).text());
}

/* A call tree. The parent of a node has a smaller index; node 0 is the root. */
class Tree {
	constructor(parent, func, count, rank) {
		this.count = count;
		this.parent = parent;
		this.func = func;
		this.self = new Float64Array(count);
		this.total = new Float64Array(count);
		this.link(rank);
		this.markFresh();
	}

	/* Sorts children by name, so that frames keep their positions. */
	link(rank) {
		const { parent, func, count } = this;
		const order = sortedByKey(count, (i) => (i ? rank[func[i]] : 0), rank.length);
		this.first = new Int32Array(count).fill(-1);
		this.next = new Int32Array(count).fill(-1);
		for (let k = count - 1; k >= 0; k--) {
			const node = order[k];
			if (node === 0) continue;
			this.next[node] = this.first[parent[node]];
			this.first[parent[node]] = node;
		}
	}

	/* Visits all nodes but the root, depth first. */
	walk(enter, leave) {
		const { parent, first, next } = this;
		let node = first[0];
		while (node > 0) {
			enter(node);
			if (first[node] >= 0) {
				node = first[node];
				continue;
			}
			while (node > 0) {
				leave(node);
				if (next[node] >= 0) break;
				node = parent[node];
			}
			if (node > 0) node = next[node];
		}
	}

	/* Marks nodes whose function is not among their callers: recursion counts once. */
	markFresh() {
		const { parent, func, count } = this;
		const active = new Int32Array(this.functions());
		this.fresh = new Uint8Array(count);
		this.depth = new Uint16Array(count);
		this.walk((node) => {
			this.depth[node] = this.depth[parent[node]] + 1;
			this.fresh[node] = active[func[node]]++ === 0 ? 1 : 0;
		}, (node) => { active[func[node]]--; });
	}

	/* The same for groups of functions; most functions are in no group. */
	markFreshGroups(groupOf, groups) {
		if (this.freshGroup) return;
		const { func, count } = this;
		const active = new Int32Array(groups);
		this.freshGroup = new Uint8Array(count);
		this.walk((node) => {
			const group = groupOf[func[node]];
			if (group >= 0 && active[group]++ === 0) this.freshGroup[node] = 1;
		}, (node) => {
			const group = groupOf[func[node]];
			if (group >= 0) active[group]--;
		});
	}

	functions() {
		let most = 0;
		for (let i = 1; i < this.count; i++) if (this.func[i] > most) most = this.func[i];
		return most + 1;
	}

	addUp() {
		const { parent, self, total } = this;
		total.set(self);
		for (let i = this.count - 1; i > 0; i--) if (total[i]) total[parent[i]] += total[i];
	}
}

/* Counting sort of 0..count-1. */
function sortedByKey(count, key, keys) {
	const starts = new Int32Array(keys + 2);
	for (let i = 0; i < count; i++) starts[key(i) + 1]++;
	for (let k = 1; k < starts.length; k++) starts[k] += starts[k - 1];
	const order = new Int32Array(count);
	for (let i = 0; i < count; i++) order[starts[key(i)]++] = i;
	return order;
}

/* The tree of the same stacks, innermost frame first. place: node of tree -> node of the
   result. */
function reverseTree(tree, used, rank) {
	let slots = new Int32Array(1 << 16).fill(-1);
	let parent = new Int32Array(1 << 15);
	let func = new Int32Array(1 << 15);
	let count = 1;
	const place = new Int32Array(tree.count);
	const hash = (p, f, mask) => (Math.imul(p, 0x9e3779b1) ^ Math.imul(f + 1, 0x85ebca6b)) >>> 7 & mask;
	const grow = () => {
		const wider = (a) => { const b = new Int32Array(a.length * 2); b.set(a); return b; };
		parent = wider(parent);
		func = wider(func);
		slots = new Int32Array(slots.length * 2).fill(-1);
		for (let i = 1; i < count; i++) {
			let at = hash(parent[i], func[i], slots.length - 1);
			while (slots[at] >= 0) at = (at + 1) & (slots.length - 1);
			slots[at] = i;
		}
	};
	for (let leaf = 1; leaf < tree.count; leaf++) {
		if (!used[leaf]) continue;
		let to = 0;
		for (let node = leaf; node > 0; node = tree.parent[node]) {
			const f = tree.func[node];
			let at = hash(to, f, slots.length - 1);
			while (slots[at] >= 0 && (parent[slots[at]] !== to || func[slots[at]] !== f))
				at = (at + 1) & (slots.length - 1);
			if (slots[at] < 0) {
				parent[count] = to;
				func[count] = f;
				slots[at] = count++;
				to = count - 1;
				if (count === parent.length) grow();
			} else {
				to = slots[at];
			}
		}
		place[leaf] = to;
	}
	const reversed = new Tree(parent.slice(0, count), func.slice(0, count), count, rank);
	reversed.place = place;
	return reversed;
}

class Model {
	constructor(data) {
		this.data = data;
		this.names = data.functions.name.map(String);
		this.moduleOf = Int32Array.from(this.groupPlaces(data.functions.places, [...data.functions.module]));
		this.modules = data.modules;
		this.threads = data.threads;
		this.processes = data.processes;
		const collator = this.names.map((name, i) => [name, i]).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
		this.rank = new Int32Array(this.names.length);
		collator.forEach((pair, at) => { this.rank[pair[1]] = at; });
		this.buildTree();
		this.lines = new Lines(data, this.forward);
		this.buildTicks();
		this.buildRuns();
		this.window = null; /* [from, to] in microseconds; null: all */
		this.thread = -1;
		this.onCpu = false;
		this.reversed = false;
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

	buildTree() {
		const { parent, function: func } = this.data.nodes;
		const count = parent.length;
		const absolute = new Int32Array(count);
		for (let i = 1; i < count; i++) absolute[i] = i - parent[i];
		this.forward = new Tree(absolute, Int32Array.from(func), count, this.rank);
		this.backward = null;
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
		this.runNode = this.runStack.map((stack) => this.lines.nodeOf[stack]);
		this.runState = new Uint8Array(count);
		this.runsOf = this.threads.map(() => [0, 0]);
		this.used = new Uint8Array(this.forward.count);
		let thread = 0;
		let tick = 0;
		for (let i = 0; i < count; i++) {
			if (runs.thread[i]) tick = 0;
			thread += runs.thread[i];
			tick += runs.tick[i];
			this.runThread[i] = thread;
			this.runTick[i] = tick;
			tick += this.runCount[i];
			this.runState[i] = stateIndex(runs.state[i]);
			this.used[this.runNode[i]] = 1;
			if (this.runsOf[thread][1] === 0) this.runsOf[thread][0] = i;
			this.runsOf[thread][1] = i + 1;
		}
	}

	/* A single snapshot has no duration. */
	get isSnapshot() {
		return this.end <= 1;
	}

	recordingOf(thread) {
		return this.processes[this.threads[thread].process].recording;
	}

	/* The time from the first tick of a run to the one after its last. */
	runSpan(run) {
		const times = this.ticks[this.recordingOf(this.runThread[run])];
		const last = this.runTick[run] + this.runCount[run];
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

	tree() {
		if (!this.reversed) return this.forward;
		if (!this.backward) this.backward = reverseTree(this.forward, this.used, this.rank);
		return this.backward;
	}

	/* Counts the selected samples at each node of the current tree. */
	recount() {
		const tree = this.tree();
		const ranges = this.ticks.map((_, i) => this.tickRange(i));
		const place = this.reversed ? tree.place : null;
		tree.self.fill(0);
		for (let t = 0; t < this.threads.length; t++) {
			if (this.thread >= 0 && t !== this.thread) continue;
			const [from, to] = ranges[this.recordingOf(t)];
			for (let i = this.runsOf[t][0]; i < this.runsOf[t][1]; i++) {
				if (this.onCpu && this.runState[i] !== 0) continue;
				const begin = this.runTick[i];
				const n = Math.min(begin + this.runCount[i], to) - Math.max(begin, from);
				if (n > 0) tree.self[place ? place[this.runNode[i]] : this.runNode[i]] += n;
			}
		}
		tree.addUp();
		return tree;
	}

	/* Samples by function and by group: [self, total]. */
	byFunction(tree) {
		const self = new Float64Array(this.names.length);
		const total = new Float64Array(this.names.length);
		const { groupOf, functions } = this;
		if (this.names.length > functions) tree.markFreshGroups(groupOf, this.names.length);
		for (let i = 1; i < tree.count; i++) {
			const f = tree.func[i];
			const group = groupOf[f];
			const here = !this.reversed ? tree.self[i] : tree.parent[i] === 0 ? tree.total[i] : 0;
			if (tree.fresh[i]) total[f] += tree.total[i];
			self[f] += here;
			if (group < 0) continue;
			if (tree.freshGroup[i]) total[group] += tree.total[i];
			self[group] += here;
		}
		return [self, total];
	}

	/* Whether a table lists a function: addresses without symbols as a group, except in a
   search. */
	isListed(f, searching) {
		return f < this.functions ? searching || this.groupOf[f] < 0 : !searching;
	}

	/* The number of samples with a matching function. */
	matchedSamples(tree, matches) {
		const inside = new Uint8Array(tree.count);
		let samples = 0;
		for (let i = 1; i < tree.count; i++) {
			inside[i] = inside[tree.parent[i]] | matches[tree.func[i]];
			if (inside[i]) samples += tree.self[i];
		}
		return samples;
	}

	moduleName(f) {
		const module = this.moduleOf[f];
		return module < 0 ? "" : baseName(this.modules[module].path);
	}
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
