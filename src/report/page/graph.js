/*
 * The wait-for graph of a snapshot: each thread above those that wait for it; threads of a
 * cycle side by side.
 */

const BOX = { width: 210, height: 46, gap: 16, row: 96, between: 84, above: 46 };
const GRAPH_MAX = 400; /* limit of drawn threads */
const GRAPH_WAITS = 5000; /* limit of analysed waits */
const GRAPH_SAME = 3; /* more threads with the same wait become one box */

function svg(name, attributes, ...children) {
	const element = document.createElementNS(byId("graph").namespaceURI, name);
	for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
	element.append(...children);
	return element;
}

const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

class Graph {
	constructor(model, onThread) {
		this.model = model;
		this.onThread = onThread;
		const all = model.data.waits || [];
		const owners = new Set(all.map((wait) => wait.owner));
		const waits = all.filter((wait) => wait.owner >= 0 || wait.cycle || owners.has(wait.thread));
		this.waits = new Map(waits.slice(0, GRAPH_WAITS).map((wait) => [wait.thread, wait]));
		this.ignored = Math.max(waits.length - GRAPH_WAITS, 0);
		this.waiting = new Map(); /* threads by owner */
		for (const wait of this.waits.values()) {
			if (wait.owner < 0) continue;
			if (!this.waiting.has(wait.owner)) this.waiting.set(wait.owner, []);
			this.waiting.get(wait.owner).push(wait.thread);
		}
	}

	get isEmpty() {
		return this.waiting.size === 0;
	}

	/* The end of the wait chain of a thread: [thread], or the members of a cycle in order. */
	heads(thread) {
		const seen = new Map();
		const chain = [];
		for (let at = thread; ;) {
			if (seen.has(at)) {
				const cycle = chain.slice(seen.get(at));
				const first = cycle.indexOf(Math.min(...cycle));
				return cycle.slice(first).concat(cycle.slice(0, first));
			}
			seen.set(at, chain.length);
			chain.push(at);
			const wait = this.waits.get(at);
			if (!wait || wait.owner < 0) return [at];
			at = wait.owner;
		}
	}

	/* A box and the boxes below it. Leaves with the same wait are merged. */
	node(threads, without) {
		const node = { threads, below: [], width: BOX.width };
		const same = new Map();
		for (const thread of this.waiting.get(threads[0]) || []) {
			if (without.has(thread)) continue;
			const leaf = !this.waiting.has(thread);
			const key = leaf ? "=" + this.waits.get(thread).text : thread;
			if (!same.has(key)) same.set(key, []);
			same.get(key).push(thread);
		}
		for (const group of same.values()) {
			const parts = group.length > GRAPH_SAME ? [group] : group.map((thread) => [thread]);
			for (const part of parts) {
				if (this.drawn++ < GRAPH_MAX) node.below.push(this.node(part, without));
				else this.left += part.length;
			}
		}
		const all = node.below.reduce((sum, child) => sum + child.width + BOX.gap, -BOX.gap);
		node.width = Math.max(BOX.width, all);
		return node;
	}

	picture() {
		return pictureOf(this.element);
	}

	draw() {
		const done = new Set();
		this.element = byId("graph");
		this.element.replaceChildren();
		this.drawn = this.right = 0;
		this.left = this.ignored;
		let top = BOX.gap;
		const parts = [...this.waiting.keys()].map((thread) => this.heads(thread));
		const isCycle = (heads) => heads.length > 1 || this.waits.get(heads[0])?.owner === heads[0];
		parts.sort((a, b) => isCycle(b) - isCycle(a));
		for (const heads of parts) {
			if (heads.some((thread) => done.has(thread))) continue;
			heads.forEach((thread) => done.add(thread));
			top = this.part(heads, isCycle(heads), top);
		}
		this.element.setAttribute("width", this.right + BOX.gap);
		this.element.setAttribute("height", top);
		byId("graph-more").textContent = this.left ? `and ${count(this.left)} more threads` : "";
	}

	part(heads, cycle, top) {
		const without = new Set(cycle ? heads : []);
		const y = cycle ? top + BOX.above : top;
		let x = BOX.gap;
		let bottom = y;
		const places = heads.map((thread) => {
			this.drawn++;
			const node = this.node([thread], without);
			const place = this.place(node, x, y);
			x += node.width + BOX.between;
			bottom = Math.max(bottom, place.bottom);
			return place;
		});
		if (cycle) places.forEach((place, i) => this.around(place, places[(i + 1) % places.length], top));
		return bottom + 2 * BOX.gap;
	}

	/* Draws a node, those below it, and the arrows up to it. Returns its position. */
	place(node, left, y) {
		const x = left + (node.width - BOX.width) / 2;
		let bottom = y + BOX.height;
		let at = left;
		for (const child of node.below) {
			const place = this.place(child, at, y + BOX.row);
			at += child.width + BOX.gap;
			bottom = Math.max(bottom, place.bottom);
			const from = [place.x + BOX.width / 2, place.y];
			const to = [x + BOX.width / 2, y + BOX.height];
			const bend = (from[1] + to[1]) / 2;
			this.arrow(child.threads, `M${from} C${from[0]},${bend} ${to[0]},${bend} ${to}`,
				[(from[0] * 3 + to[0]) / 4, from[1] - 14], to, [0, -1]);
		}
		this.box(node, x, y);
		this.right = Math.max(this.right, x + BOX.width, at);
		return { thread: node.threads[0], x, y, bottom };
	}

	/* The arrow to the next member of a cycle; the last arrow returns above the others. */
	around(from, to, top) {
		const middle = from.y + BOX.height / 2;
		if (to.x > from.x) {
			this.arrow([from.thread], `M${from.x + BOX.width},${middle} L${to.x},${middle}`,
				[(from.x + BOX.width + to.x) / 2, middle - 6], [to.x, middle], [1, 0]);
			return;
		}
		const begin = from.x + BOX.width * 0.7;
		const end = to.x + BOX.width * 0.3;
		this.arrow([from.thread], `M${begin},${from.y} C${begin},${top - 4} ${end},${top - 4} ${end},${to.y}`,
			[(begin + end) / 2, top + 8], [end, to.y], [0, 1]);
	}

	/* way: the direction of the head at tip. */
	arrow(threads, path, label, tip, way) {
		const wait = this.waits.get(threads[0]);
		const name = wait.cycle ? " cycle" : "";
		const text = svg("text", { x: label[0], y: label[1], class: "kind" });
		const back = [tip[0] - way[0] * 9, tip[1] - way[1] * 9];
		const side = [way[1] * 5, way[0] * 5];
		const corners = [tip, [back[0] + side[0], back[1] + side[1]], [back[0] - side[0], back[1] - side[1]]];
		text.textContent = wait.kind;
		this.element.append(svg("path", { d: path, class: "arrow" + name }),
			svg("polygon", { points: corners.join(" "), class: "head" + name }), text);
	}

	box(node, x, y) {
		const [thread] = node.threads;
		const wait = this.waits.get(thread);
		const many = node.threads.length > 1;
		const reason = wait ? `waits for ${wait.text}` : "";
		const label = many ? `${count(node.threads.length)} threads` : threadLabel(this.model, thread);
		const names = many ? node.threads.slice(0, 20).map((t) => threadLabel(this.model, t)).join(", ") : reason;
		const kind = ["node", wait?.cycle ? "cycle" : "", !wait || wait.owner < 0 ? "root" : ""].join(" ").trim();
		const heading = svg("text", { x: x + 8, y: y + 18, class: "name" });
		const rest = svg("text", { x: x + 8, y: y + 36 });
		heading.textContent = shorten(label, 26);
		rest.textContent = shorten(many ? names : wait ? wait.text : "", 27);
		const group = svg("g", { class: kind, tabindex: 0, role: "button", "aria-description": `${label}, ${reason}` },
			svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: 5 }), heading, rest);
		group.addEventListener("pointermove", (event) => showTip([label, many ? `${reason}: ${names}` : reason], event));
		group.addEventListener("pointerleave", () => showTip(null));
		group.addEventListener("click", () => this.onThread(many ? -1 : thread));
		group.addEventListener("keydown", (event) => {
			if (event.key === "Enter") this.onThread(many ? -1 : thread);
		});
		this.element.append(group);
	}
}
