/*
 * Files and lines. A node of the call tree is a function; it consists of calls, which are the
 * lines of that function. Without lines the data has no calls, and each node is its only one.
 */

const LINES_SHOWN = 3;

class Lines {
	constructor(data, tree) {
		const { parent, node, frame } = data.calls;
		this.known = Boolean(parent);
		this.count = this.known ? parent.length : tree.count;
		this.nodeOf = this.known ? sums(node) : Int32Array.from({ length: tree.count }, (_, i) => i);
		this.self = new Float64Array(this.count); /* samples of the selection */
		this.total = null;
		this.funcOf = tree.func;
		this.callsOf = new WeakMap();
		if (!this.known) return;
		this.parent = Int32Array.from(parent, (distance, i) => i - distance);
		this.frame = frame;
		this.line = data.frames.line;
		let file = null;
		this.file = data.frames.file.map((name) => { file = name === "" ? file : name; return file; });
	}

	clear() {
		this.self.fill(0);
		this.total = null;
	}

	totals() {
		if (this.total) return this.total;
		this.total = this.self.slice();
		for (let i = this.count - 1; i > 0; i--) if (this.total[i]) this.total[this.parent[i]] += this.total[i];
		return this.total;
	}

	/* The calls of each node of a tree; of each function, if it is reversed. */
	callsIn(tree) {
		if (this.callsOf.has(tree)) return this.callsOf.get(tree);
		const keys = tree.reversed ? this.functions(tree) : tree.count;
		const key = (call) => {
			const node = this.nodeOf[call];
			const to = tree.reversed ? this.funcOf[node] : tree.place ? tree.place[node] : node;
			return to < 0 ? keys : to;
		};
		const order = sortedByKey(this.count, key, keys + 1);
		const starts = new Int32Array(keys + 2);
		for (let call = 0; call < this.count; call++) starts[key(call) + 1]++;
		for (let k = 1; k < starts.length; k++) starts[k] += starts[k - 1];
		this.callsOf.set(tree, { order, starts });
		return this.callsOf.get(tree);
	}

	functions() {
		return this.funcOf.reduce((most, f) => Math.max(most, f), 0) + 1;
	}

	/* "file:line" where the samples of a node are, the most frequent ones first; "" if unknown.
	   In a reversed tree those of its function. */
	describe(tree, node) {
		if (!this.known || node <= 0) return "";
		const { order, starts } = this.callsIn(tree);
		const key = tree.reversed ? tree.func[node] : node;
		const weight = tree.reversed && tree.parent[node] === 0 ? this.self : this.totals();
		const samples = new Map();
		let all = 0;
		for (let i = starts[key]; i < starts[key + 1]; i++) {
			const call = order[i];
			const file = this.file[this.frame[call]];
			if (!weight[call]) continue;
			all += weight[call];
			if (!file) continue;
			const line = this.line[this.frame[call]];
			const text = line ? `${file}:${line}` : file;
			samples.set(text, (samples.get(text) || 0) + weight[call]);
		}
		return most(samples, LINES_SHOWN, all, (text) => text);
	}
}

/* "a (70.0 %), b (20.0 %), and 3 more": the keys of a map with the most samples, of all. */
function most(samples, shown, all, textOf) {
	const order = [...samples].sort((a, b) => b[1] - a[1]);
	const texts = order.slice(0, shown).map(([key, n]) => (n < all ? `${textOf(key)} (${share(n, all)})` : textOf(key)));
	const left = order.length - texts.length;
	return texts.join(", ") + (left ? `, and ${count(left)} more` : "");
}

/* The sums of a sequence up to each element. */
function sums(steps) {
	const result = new Int32Array(steps.length);
	for (let i = 0, sum = 0; i < steps.length; i++) result[i] = sum += steps[i];
	return result;
}
