/* The call tree as a table: callees below callers, the heaviest first; opened step by step. */

const ROWS_MOST = 2000; /* limit of rows that are drawn */
const CALLEES_MOST = 100; /* limit of callees of one row */
const INDENT_MOST = 40; /* deeper rows are indented no more */

class CallTree {
	constructor(model, onSelect) {
		this.model = model;
		this.onSelect = onSelect;
		this.body = byId("calls").tBodies[0];
		this.more = byId("calls-more");
		this.open = new Set();
		this.current = 0;
		this.body.addEventListener("click", (event) => this.click(event));
		this.body.addEventListener("keydown", (event) => this.key(event));
	}

	update(tree) {
		if (this.tree !== tree) {
			this.tree = tree;
			this.open.clear();
			this.current = 0;
		}
		if (!this.open.size) this.openHottest();
		this.draw();
	}

	/* Opens what leads to most of the samples, until it divides. */
	openHottest() {
		const { total } = this.tree;
		for (let node = 0; ;) {
			const [child] = this.tree.children(node, true);
			if (!child || total[child] * 2 < total[node] || this.open.size > INDENT_MOST) break;
			this.open.add(child);
			node = child;
		}
	}

	/* Also opens callees that are the only ones. */
	openNode(node) {
		for (let children = this.tree.children(node, true), at = node; children.length;) {
			this.open.add(at);
			if (children.length > 1) break;
			[at] = children;
			children = this.tree.children(at, true);
		}
	}

	openAll(node) {
		const open = [node];
		for (let i = 0; i < open.length && open.length < ROWS_MOST; i++) {
			const children = this.tree.children(open[i], true).slice(0, CALLEES_MOST);
			if (!children.length) continue;
			this.open.add(open[i]);
			open.push(...children);
		}
	}

	/* Opens the callers of a node, and selects it. */
	reveal(node) {
		for (let at = this.tree.parent[node]; at > 0; at = this.tree.parent[at]) this.open.add(at);
		this.select(node);
	}

	/* The nodes of the rows, from top to bottom. */
	visible() {
		const rows = [];
		const stack = [[...this.callees(0)].reverse()];
		this.left = 0;
		while (stack.length) {
			const siblings = stack[stack.length - 1];
			const node = siblings.pop();
			if (node === undefined) {
				stack.pop();
				continue;
			}
			if (rows.length >= ROWS_MOST) {
				this.left++;
				continue;
			}
			rows.push(node);
			if (this.open.has(node)) stack.push(this.callees(node).reverse());
		}
		return rows;
	}

	callees(node) {
		const children = this.tree.children(node, true);
		this.left += Math.max(children.length - CALLEES_MOST, 0);
		return children.slice(0, CALLEES_MOST);
	}

	draw() {
		this.left = 0;
		const rows = this.visible();
		if (!rows.includes(this.current)) this.current = rows[0] || 0;
		this.rowOf = new Map();
		this.body.replaceChildren(...rows.map((node) => this.row(node)));
		this.more.textContent = this.left ? `and ${count(this.left)} more: search or focus to find them` : rows.length ? "" : "no samples";
	}

	row(node) {
		const { total, self, func, depth, first } = this.tree;
		const row = document.createElement("tr");
		const all = total[0];
		const hasCallees = first[node] >= 0 && this.tree.children(node, false).length > 0;
		row.dataset.node = node;
		row.tabIndex = node === this.current ? 0 : -1;
		row.setAttribute("aria-level", depth[node]);
		if (hasCallees) row.setAttribute("aria-expanded", String(this.open.has(node)));
		row.setAttribute("aria-selected", String(node === this.current));
		for (const samples of [total[node], this.tree.reversed ? null : self[node]]) {
			const cell = row.insertCell();
			cell.className = "number";
			cell.textContent = samples === null || samples === 0 ? "" : share(samples, all);
			cell.title = samples === null ? "" : amount(samples);
		}
		const name = row.insertCell();
		const sign = document.createElement("i");
		name.className = "call";
		name.style.paddingLeft = 10 + 14 * Math.min(depth[node] - 1, INDENT_MOST) + "px";
		sign.className = "sign";
		sign.textContent = hasCallees ? (this.open.has(node) ? "▾" : "▸") : "";
		name.append(sign, this.model.names[func[node]]);
		name.title = [this.model.names[func[node]], this.model.lines.describe(this.tree, node)].filter(Boolean).join("\n");
		row.insertCell().textContent = this.model.moduleName(func[node]);
		if (this.model.matches?.[func[node]]) row.className = "match";
		this.rowOf.set(node, row);
		return row;
	}

	select(node) {
		this.current = node;
		this.draw();
		this.rowOf.get(node)?.focus();
		this.rowOf.get(node)?.scrollIntoView({ block: "nearest" });
		this.onSelect(node);
	}

	toggle(node) {
		if (this.open.has(node)) this.open.delete(node);
		else this.openNode(node);
	}

	click(event) {
		const row = event.target.closest("tr");
		if (!row) return;
		const node = Number(row.dataset.node);
		if (event.target.className === "sign" || event.detail === 2) this.toggle(node);
		this.select(node);
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !event.target.dataset.node) return;
		const node = this.current;
		const rows = [...this.rowOf.keys()];
		const at = rows.indexOf(node);
		const isOpen = this.open.has(node);
		const hasCallees = this.rowOf.get(node).hasAttribute("aria-expanded");
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: Math.min(at + 20, rows.length - 1), PageUp: Math.max(at - 20, 0) }[event.key];
		if (to !== undefined) {
			if (rows[to] !== undefined) this.select(rows[to]);
		} else if (event.key === "ArrowRight") {
			if (hasCallees && !isOpen) this.openNode(node);
			this.select(isOpen && rows[at + 1] ? rows[at + 1] : node);
		} else if (event.key === "ArrowLeft") {
			const parent = this.tree.parent[node];
			if (isOpen) this.open.delete(node);
			this.select(isOpen || !parent ? node : parent);
		} else if (event.key === "Enter" || event.key === " ") {
			this.toggle(node);
			this.select(node);
		} else if (event.key === "*") {
			this.openAll(node);
			this.select(node);
		} else return;
		event.preventDefault();
		event.stopPropagation();
	}
}
