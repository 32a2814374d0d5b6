/* The stack chart of one thread: time to the right, calls downwards. A flame graph whose boxes are
   placed by time. */

class Chart extends Flame {
	/* onWindow(window): a box was opened, which selects its time. */
	constructor(model, order, onSelect, onWindow) {
		super("chart", model, (node) => this.moveTo(node), onSelect);
		this.order = order;
		this.onWindow = onWindow;
		this.canvas.addEventListener("dblclick", () => this.openBox());
	}

	/* The selected thread; of several, the first in the timeline. */
	get thread() {
		return this.order.find((t) => this.model.isChosen(t));
	}

	get span() {
		return this.model.window || [0, this.model.end];
	}

	timeAt(x) {
		const [from, to] = this.span;
		return from + (x / this.width) * (to - from);
	}

	/* Calls that go on from one sample to the next one are one box. */
	layout() {
		const { tree, model } = this;
		this.width = this.box.clientWidth;
		this.rows = [];
		this.hit = [0, 0];
		if (!tree || this.width < 1) return;
		byId("chart-thread").textContent = threadLabel(model, this.thread) +
			(model.chosen?.size === 1 ? "" : ": the first of the selected threads");
		this.push(0, 0, 0, this.width);
		const [from, to] = this.span;
		const open = []; /* by depth: [node, time] */
		let last = from;
		const close = (depth) => {
			while (open.length > depth) {
				const [node, begin] = open.pop();
				this.add(open.length + 1, node, ...[begin, last].map((time) => ((time - from) / (to - from)) * this.width));
			}
		};
		for (const [begin, end, node] of this.pieces(from, to)) {
			const path = tree.path(node);
			let same = 0;
			if (begin <= last) while (same < open.length && open[same][0] === path[same]) same++;
			close(same);
			for (const call of path.slice(same)) open.push([call, begin]);
			last = end;
		}
		close(0);
		this.resize();
		this.paint();
	}

	/* The samples that are counted, as [from, to, node], without gaps. */
	*pieces(from, to) {
		const { model, thread } = this;
		const { place } = model.shaped;
		for (let i = model.runsOf[thread][0]; i < model.runsOf[thread][1]; i++) {
			const span = model.runSpan(i);
			const end = Math.min(span[1], to);
			let at = Math.max(span[0], from);
			if (at >= end || model.runClass[i] > model.shows || !model.isCounted(model.runStack[i])) continue;
			if (model.wait >= 0 && model.waits.rowOf[i] !== model.wait) continue;
			const recorded = model.lines.nodeOf[model.runStack[i]];
			const node = place ? place[recorded] : recorded;
			for (const [begin, after] of model.gapsIn(model.recordingOf(thread), at, end)) {
				if (begin > at) yield [at, begin, node];
				at = after;
			}
			if (at < end) yield [at, end, node];
		}
	}

	/* Leaves out what is hidden by the box before. */
	add(row, node, left, right) {
		const line = this.rows[row];
		if (line && right - line.x.at(-1) - line.width.at(-1) < 0.5) return;
		this.push(row, node, left, Math.max(right - left, 0.5));
	}

	draw(context, height, scrolled) {
		super.draw(context, height, scrolled);
		context.fillStyle = palette().fullInk;
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "top";
		paintAxis(context, this.span, 0, this.width, 4 - scrolled);
	}

	label(node) {
		return node ? super.label(node) : "";
	}

	describe(node) {
		const [row, i] = this.hit;
		const { x, width } = this.rows[row];
		const [from, to] = [x[i], x[i] + width[i]].map((at) => this.timeAt(at) / 1e6);
		return [...super.describe(node), `${from.toFixed(3)} s to ${to.toFixed(3)} s`];
	}

	/* Selects the time of the box that was clicked last. */
	openBox() {
		const [row, i] = this.hit;
		const { x, width } = this.rows[row];
		if (row) this.onWindow([this.timeAt(x[i]), this.timeAt(x[i] + width[i])]);
		else this.onWindow(null);
	}

	key(event) {
		const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
		if (event.ctrlKey || event.metaKey || event.altKey || !this.tree || !(by || event.key === "Enter")) return;
		event.preventDefault();
		if (!by) return void this.openBox();
		const [row, i] = this.hit;
		const line = this.rows[row + by[0]];
		const x = this.rows[row].x[i];
		const to = !by[0] ? i + by[1] : line ? line.x.findIndex((left, at) => left + line.width[at] > x) : -1;
		if (!line || line.node[to] === undefined) return;
		this.hit = [row + by[0], to];
		this.moveTo(line.node[to]);
	}
}
