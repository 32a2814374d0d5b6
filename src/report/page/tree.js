/*
 * Call trees, and the trees that can be made of them: with functions dropped, focused or
 * innermost first. Each step takes time in proportion to the size of the tree.
 */

/* A call tree. The parent of a node has a smaller index; node 0 is the root. */
class Tree {
	constructor(parent, func, rank) {
		this.count = parent.length;
		this.parent = parent;
		this.func = func;
		this.rank = rank; /* of functions by name */
		this.self = new Float64Array(this.count);
		this.total = new Float64Array(this.count);
		this.place = null; /* by node of the recorded tree: the node here, -1: none; null: the same */
		this.reversed = false; /* innermost functions first */
		this.link();
	}

	link() {
		const { parent, count } = this;
		this.depth = new Int32Array(count);
		this.first = new Int32Array(count).fill(-1);
		this.next = new Int32Array(count).fill(-1);
		for (let node = 1; node < count; node++) this.depth[node] = this.depth[parent[node]] + 1;
		for (let node = count - 1; node > 0; node--) {
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
	get fresh() {
		if (this.freshNodes) return this.freshNodes;
		const { func, count } = this;
		const active = new Int32Array(this.rank.length);
		this.freshNodes = new Uint8Array(count);
		this.walk((node) => {
			this.freshNodes[node] = active[func[node]]++ === 0 ? 1 : 0;
		}, (node) => { active[func[node]]--; });
		return this.freshNodes;
	}

	/* The nodes outside of which no function of a group is called; most functions are in no
	   group. */
	freshOfGroups(groupOf, groups) {
		if (this.freshGroup) return this.freshGroup;
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
		return this.freshGroup;
	}

	addUp() {
		const { parent, self, total } = this;
		total.set(self);
		for (let i = this.count - 1; i > 0; i--) if (total[i]) total[parent[i]] += total[i];
	}

	/* The callees with samples: by name, so that frames keep their positions, or the heaviest
	   first. */
	children(node, byWeight) {
		const { first, next, total, func, rank } = this;
		const found = [];
		for (let child = first[node]; child >= 0; child = next[child]) if (total[child] > 0) found.push(child);
		const byName = (a, b) => rank[func[a]] - rank[func[b]];
		if (found.length < 2) return found;
		return found.sort(byWeight ? (a, b) => total[b] - total[a] || byName(a, b) : byName);
	}

	/* The nodes from the outermost call to a node. */
	path(node) {
		const nodes = [];
		for (let at = node; at > 0; at = this.parent[at]) nodes.push(at);
		return nodes.reverse();
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

/* Builds a tree call by call, with a hash table of (caller, function). */
class TreeBuilder {
	/* expected: number of nodes, to start with. */
	constructor(expected) {
		const size = 1 << (32 - Math.clz32(Math.max(expected, 1 << 10)));
		this.slots = new Int32Array(2 * size); /* 0: empty */
		this.parent = new Int32Array(size);
		this.func = new Int32Array(size);
		this.count = 1;
	}

	slot(parent, func) {
		const { slots } = this;
		const mask = slots.length - 1;
		const hash = Math.imul(Math.imul(parent, 0x9e3779b1) ^ (func + 1), 0x85ebca6b);
		let at = (hash ^ (hash >>> 15)) & mask;
		for (let node = slots[at]; node > 0; node = slots[at]) {
			if (this.parent[node] === parent && this.func[node] === func) break;
			at = (at + 1) & mask;
		}
		return at;
	}

	/* The node of a function called by a node; it is added if it is new. */
	child(parent, func) {
		const at = this.slot(parent, func);
		if (this.slots[at]) return this.slots[at];
		const node = this.count++;
		this.parent[node] = parent;
		this.func[node] = func;
		this.slots[at] = node;
		if (this.count === this.parent.length) this.grow();
		return node;
	}

	grow() {
		const wider = (a) => { const b = new Int32Array(a.length * 2); b.set(a); return b; };
		this.parent = wider(this.parent);
		this.func = wider(this.func);
		this.slots = new Int32Array(this.slots.length * 2);
		for (let i = 1; i < this.count; i++) this.slots[this.slot(this.parent[i], this.func[i])] = i;
	}

	tree(rank) {
		return new Tree(this.parent.slice(0, this.count), this.func.slice(0, this.count), rank);
	}
}

const CYCLE = 16; /* limit of the functions in a cycle of calls that is collapsed */

/* The node to continue at: where the cycle began, if the last calls are the ones before once
   more, such as a, b, a, b. */
function withoutCycle(builder, node) {
	const { parent, func } = builder;
	let before = parent[node];
	for (let length = 1; length <= CYCLE && before > 0; length++, before = parent[before]) {
		let a = node;
		let b = before;
		let same = 0;
		while (same < length && b > 0 && func[a] === func[b]) {
			a = parent[a];
			b = parent[b];
			same++;
		}
		if (same === length) return before;
	}
	return node;
}

/*
 * The changes to a tree. Each returns the node for a call of func by the node at; -1 is outside
 * of the changed tree. is(func): whether it is the function that the change is about.
 */
const CHANGES = {
	focus: (is) => (builder, at, func) => (at >= 0 ? builder.child(at, func) : is(func) ? builder.child(0, func) : -1),
	drop: (is) => (builder, at, func) => (is(func) ? at : builder.child(at, func)),
	exclude: (is) => (builder, at, func) => (at < 0 || is(func) ? -1 : builder.child(at, func)),
	native: (is) => (builder, at, func) => (is(func) ? at : builder.child(at, func)),
	recursion: () => (builder, at, func) => withoutCycle(builder, builder.child(at, func)),
};

function changedTree(tree, kind, is) {
	const builder = new TreeBuilder(kind === "focus" ? 0 : tree.count);
	const step = CHANGES[kind](is);
	const place = new Int32Array(tree.count);
	place[0] = kind === "focus" ? -1 : 0;
	for (let i = 1; i < tree.count; i++) place[i] = step(builder, place[tree.parent[i]], tree.func[i]);
	const changed = builder.tree(tree.rank);
	changed.place = tree.place ? tree.place.map((node) => (node < 0 ? -1 : place[node])) : place;
	return changed;
}

/*
 * The same stacks from the inside to the outside: the paths from the chosen nodes to the root.
 * from: by node of tree, its node in the result. expected: number of nodes.
 */
function reversedTree(tree, isChosen, expected) {
	const builder = new TreeBuilder(expected);
	const from = new Int32Array(tree.count);
	for (let leaf = 1; leaf < tree.count; leaf++) {
		if (!isChosen(leaf)) continue;
		let to = 0;
		for (let node = leaf; node > 0; node = tree.parent[node]) to = builder.child(to, tree.func[node]);
		from[leaf] = to;
	}
	const reversed = builder.tree(tree.rank);
	reversed.from = from;
	reversed.reversed = true;
	return reversed;
}
