/* The flame graph: a canvas as high as the visible part, in a space as high as the graph. */

const ROW = 19;

class Flame {
	/* id: of the scrolling box, whose elements are ID-space and ID-canvas. onPick: what to do
	   with a frame that was clicked; onSelect: with one that has the focus. */
	constructor(id, model, onPick, onSelect) {
		this.model = model;
		this.onPick = onPick;
		this.onSelect = onSelect;
		this.box = byId(id);
		this.space = byId(id + "-space");
		this.canvas = byId(id + "-canvas");
		this.zoom = 0;
		this.current = 0; /* the node with the keyboard focus */
		this.hovered = -1;
		this.rootAtBottom = false;
		this.byWeight = true;
		this.rows = [];
		this.hit = [0, 0]; /* row and index of the box that was pointed at last */
		this.listen();
	}

	listen() {
		this.box.addEventListener("scroll", () => this.paint());
		for (const name of ["focus", "blur"]) this.box.addEventListener(name, () => this.paint());
		this.canvas.addEventListener("pointermove", (event) => this.hover(event));
		this.canvas.addEventListener("pointerleave", () => this.leave());
		this.canvas.addEventListener("click", (event) => {
			const node = this.nodeAt(event);
			if (node >= 0) this.onPick(node);
		});
		this.box.addEventListener("keydown", (event) => this.key(event));
	}

	setTree(tree) {
		if (this.tree !== tree) {
			this.zoom = this.current = 0;
			this.tree = tree;
		}
		/* a frame without samples cannot stay zoomed */
		while (this.zoom && !tree.total[this.zoom]) this.zoom = tree.parent[this.zoom];
		while (this.current && !tree.total[this.current]) this.current = tree.parent[this.current];
		this.hovered = -1;
		this.layout();
	}

	zoomTo(node) {
		this.zoom = node;
		this.current = node;
		this.hovered = -1;
		this.layout();
		this.onSelect(node);
	}

	/* All boxes that are wide enough to be visible, row by row. */
	layout() {
		const tree = this.tree;
		const width = this.box.clientWidth;
		this.width = width;
		this.rows = [];
		if (!tree || width < 1) return;
		const path = [0, ...tree.path(this.zoom)];
		path.forEach((node, row) => this.push(row, node, 0, width));
		const whole = tree.total[this.zoom];
		if (whole > 0) this.place(path.length, width / whole);
		else this.rows = [];
		this.resize();
		this.paint();
	}

	push(row, node, x, width) {
		if (!this.rows[row]) this.rows[row] = { x: [], width: [], node: [] };
		const line = this.rows[row];
		line.x.push(x);
		line.width.push(width);
		line.node.push(node);
	}

	place(firstRow, scale) {
		const { total } = this.tree;
		let row = firstRow;
		let parents = { x: [0], node: [this.zoom] };
		while (parents.node.length) {
			for (let i = 0; i < parents.node.length; i++) {
				let x = parents.x[i];
				for (const child of this.tree.children(parents.node[i], this.byWeight)) {
					const width = total[child] * scale;
					if (width >= 0.5) this.push(row, child, x, width);
					x += width;
				}
			}
			parents = this.rows[row] || { x: [], node: [] };
			row++;
		}
	}

	resize() {
		const ratio = window.devicePixelRatio || 1;
		const height = this.box.clientHeight;
		const all = Math.max(this.rows.length * ROW, height);
		this.height = height;
		this.all = all;
		this.space.style.height = all + "px";
		this.canvas.style.height = height + "px";
		if (this.canvas.width !== Math.round(this.width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
			this.canvas.width = Math.round(this.width * ratio);
			this.canvas.height = Math.round(height * ratio);
		}
		this.context = this.canvas.getContext("2d");
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
	}

	/* The top of a row in the canvas. */
	top(row, scrolled = this.box.scrollTop) {
		const y = this.rootAtBottom ? this.all - (row + 1) * ROW : row * ROW;
		return y - scrolled;
	}

	paint() {
		if (this.context && this.tree) this.draw(this.context, this.height, this.box.scrollTop);
	}

	/* All rows, as an SVG. */
	picture() {
		const height = Math.max(this.rows.length, 1) * ROW;
		const context = new SvgContext(this.width, height);
		this.draw(context, height, this.rootAtBottom ? this.all - height : 0);
		return context.picture;
	}

	draw(context, height, scrolled) {
		const colors = palette();
		context.fillStyle = colors.panel;
		context.fillRect(0, 0, this.width, height);
		context.font = "12px ui-monospace, 'DejaVu Sans Mono', monospace";
		context.textBaseline = "middle";
		const letter = context.measureText("m").width;
		if (!this.rows.length) {
			context.fillStyle = colors.soft;
			context.fillText("no samples", 10, ROW);
		}
		this.rows.forEach((line, row) => {
			const y = this.top(row, scrolled);
			if (y + ROW <= 0 || y >= height) return;
			for (let i = 0; i < line.node.length; i++)
				this.paintBox(context, colors, letter, line.node[i], line.x[i], y, line.width[i], row);
		});
	}

	paintBox(context, colors, letter, node, x, y, width, row) {
		const f = node ? this.tree.func[node] : -1;
		const { matches } = this.model;
		const matched = f >= 0 && matches && matches[f];
		const above = row > 0 ? this.zoomDepth() >= row : false;
		const gap = width > 3 ? 1 : width > 1 ? 0.3 : 0;
		context.globalAlpha = (matches && !matched) || (above && this.zoom) ? 0.55 : 1;
		context.fillStyle = matched ? colors.match : f < 0 ? colors.none : this.color(colors, node);
		context.fillRect(x, y, Math.max(width - gap, 0.5), ROW - 1);
		context.globalAlpha = 1;
		if (width > 3 * letter) {
			context.fillStyle = matched ? colors.matchInk : colors.ink;
			const fits = Math.floor((width - 8) / letter);
			const name = this.label(node);
			context.fillText(name.length > fits ? name.slice(0, Math.max(fits - 1, 0)) + "…" : name, x + 4, y + ROW / 2);
		}
		if (node === this.hovered || (node === this.current && document.activeElement === this.box)) {
			context.strokeStyle = colors.ink;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(width - gap - 2, 1), ROW - 3);
		}
	}

	color(colors, node) {
		if (!this.tree.second) return this.model.color(colors, this.tree.func[node]);
		const [first, second] = sharesOf(this.tree, node);
		return colors.change((second - first) / (first + second || 1));
	}

	zoomDepth() {
		return this.zoom ? this.tree.depth[this.zoom] - 1 : 0;
	}

	label(node) {
		return node ? this.model.names[this.tree.func[node]] : "all";
	}

	nodeAt(event) {
		const bounds = this.canvas.getBoundingClientRect();
		const x = event.clientX - bounds.left;
		const y = event.clientY - bounds.top + this.box.scrollTop;
		const row = Math.floor((this.rootAtBottom ? this.all - y : y) / ROW);
		const line = this.rows[row];
		if (!line) return -1;
		const i = line.x.findIndex((left, at) => x >= left && x < left + Math.max(line.width[at], 1));
		if (i < 0) return -1;
		this.hit = [row, i];
		return line.node[i];
	}

	hover(event) {
		const node = this.nodeAt(event);
		if (node !== this.hovered) {
			this.hovered = node;
			this.paint();
		}
		showTip(node >= 0 ? this.describe(node) : null, event);
	}

	leave() {
		this.hovered = -1;
		showTip(null);
		this.paint();
	}

	/* [name, samples, lines] of a node. */
	describe(node) {
		return describeNode(this.model, this.tree, node, this.zoom);
	}

	/* Scrolls the focused node into view. */
	moveTo(node) {
		this.current = node;
		const row = node ? this.tree.depth[node] : 0;
		const y = this.top(row);
		if (y < 0) this.box.scrollTop += y;
		if (y + ROW > this.height) this.box.scrollTop += y + ROW - this.height;
		this.onSelect(node);
		this.paint();
	}

	neighbour(node, step) {
		const row = node ? this.tree.depth[node] : 0;
		const line = this.rows[row];
		const at = line ? line.node.indexOf(node) : -1;
		return at >= 0 && line.node[at + step] !== undefined ? line.node[at + step] : node;
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.tree) return;
		const inward = this.rootAtBottom ? "ArrowUp" : "ArrowDown";
		const outward = this.rootAtBottom ? "ArrowDown" : "ArrowUp";
		const parent = this.current ? this.tree.parent[this.current] : 0;
		if (event.key === inward) {
			const [child] = this.tree.children(this.current, true);
			if (child) this.moveTo(child);
		} else if (event.key === outward) this.moveTo(parent);
		else if (event.key === "ArrowLeft") this.moveTo(this.neighbour(this.current, -1));
		else if (event.key === "ArrowRight") this.moveTo(this.neighbour(this.current, 1));
		else if (event.key === "Enter" || event.key === " ") this.onPick(this.current);
		else if (event.key === "Backspace") this.onPick(this.zoom ? this.tree.parent[this.zoom] : 0);
		else return;
		event.preventDefault();
	}
}

/* [name, samples, lines] of a node. within: a node whose share is told as well. */
function describeNode(model, tree, node, within = 0) {
	const { total, self, func } = tree;
	const all = total[0] || 1;
	const parts = [node ? model.moduleName(func[node]) : "", `${amount(total[node])}, ${share(total[node], all)}`];
	if (within && within !== node) parts[1] += `, ${share(total[node], total[within])} of the zoomed frame`;
	if (!tree.reversed && node) parts[1] += `; self ${part(self[node])}, ${share(self[node], all)}`;
	if (tree.second && node) parts.push(sharesOf(tree, node).map((of, i) => `${["first", "second"][i]} ${share(of, 1)}`).join(", "));
	return [node ? model.names[func[node]] : "all", parts.filter(Boolean).join(" · "), model.lines.describe(tree, node)];
}
