/* Threads over time by state: an overview, and one row for each thread, or for a pool of them that
   is closed. Dragging selects a time window. */

const OVERVIEW = 46;
const LANE = 16;
const POOL = 4; /* that many threads of one name are one row, which opens */
const SIGN = 12; /* the width of its sign */

/* The threads of each process by name, whatever numbers are in it: [{ name, process, threads }] */
function poolsOf(model, threads) {
	const pools = new Map();
	for (const t of threads) {
		const { process, name } = model.threads[t];
		const key = `${process} ${name.replace(/\d+/g, "*")}`;
		if (!pools.has(key)) pools.set(key, { key, name, process, threads: [] });
		const pool = pools.get(key);
		if (name !== pool.name) pool.name = name.replace(/\d+/g, "*");
		pool.threads.push(t);
	}
	return [...pools.values()];
}

const isSame = (set, threads) => set.size === threads.length && threads.every((t) => set.has(t));

/* How long a thread was on a CPU, and waited for one. */
function cpuText(thread) {
	const seconds = (ns) => (ns / 1e9).toFixed(3) + " s";
	if (!thread.cpu_ns && !thread.ready_ns) return "";
	return `: ${seconds(thread.cpu_ns)} on a CPU, ${seconds(thread.ready_ns)} waiting for one`;
}

class Timeline {
	constructor(model, page) {
		this.model = model;
		this.page = page;
		this.box = document.getElementById("time");
		this.rows = document.getElementById("rows");
		this.overview = document.getElementById("overview");
		this.canvas = document.getElementById("rows-canvas");
		this.divider = document.getElementById("divider");
		this.order = this.sorted();
		this.opened = new Set(); /* keys of pools */
		this.whole = {};
		this.drag = null;
		this.find(null);
		this.listen();
	}

	/* Shows only the threads for which test(label) holds; null: all. */
	find(test) {
		this.found = test ? this.order.filter((t) => test(threadLabel(this.model, t))) : this.order;
		this.arrange();
	}

	arrange() {
		this.lanes = [];
		for (const pool of poolsOf(this.model, this.found)) {
			const isPool = pool.threads.length >= POOL;
			if (isPool) this.lanes.push(pool);
			if (!isPool || this.opened.has(pool.key))
				for (const t of pool.threads) this.lanes.push({ threads: [t], indent: isPool ? SIGN : 0 });
		}
	}

	/* Opens or closes a pool. */
	toggle({ key }) {
		if (!this.opened.delete(key)) this.opened.add(key);
		this.arrange();
		this.page.resize();
	}

	/* The index of the row whose threads are selected; -1: none. */
	chosenLane() {
		const { chosen } = this.model;
		return chosen ? this.lanes.findIndex(({ threads }) => isSame(chosen, threads)) : -1;
	}

	/* Selects the threads of the next row; before the first: all threads. */
	step(by) {
		const at = this.chosenLane() + by;
		if (at < -1 || at >= this.lanes.length) return;
		const y = at * LANE;
		this.rows.scrollTop = Math.min(Math.max(this.rows.scrollTop, y + LANE - this.laneHeight), Math.max(y, 0));
		this.page.selectThreads(at < 0 ? null : new Set(this.lanes[at].threads));
	}

	/* Sets the height of the rows; 0: the usual one. */
	setHeight(height) {
		const most = this.lanes.length * LANE;
		this.rows.style.maxHeight = height ? Math.min(Math.max(height, 2 * LANE), most) + "px" : "";
		this.page.resize();
	}

	/* By process, then the most active threads first. */
	sorted() {
		const model = this.model;
		const active = model.threads.map((_, t) => {
			let samples = 0;
			for (let i = model.runsOf[t][0]; i < model.runsOf[t][1]; i++)
				if (model.runState[i] !== SLEEPING) samples += model.runCount[i];
			return samples;
		});
		return model.threads.map((_, t) => t).sort((a, b) =>
			model.threads[a].process - model.threads[b].process || active[b] - active[a] || a - b);
	}

	listen() {
		this.rows.addEventListener("scroll", () => this.paintLanes());
		this.box.addEventListener("pointerdown", (event) => this.down(event));
		this.box.addEventListener("pointermove", (event) => this.move(event));
		this.box.addEventListener("pointerup", (event) => this.up(event));
		this.box.addEventListener("pointercancel", () => { this.drag = null; });
		this.box.addEventListener("pointerleave", () => showTip(null));
		this.box.addEventListener("keydown", (event) => this.key(event));
		this.divider.addEventListener("pointerdown", (event) => this.divider.setPointerCapture(event.pointerId));
		this.divider.addEventListener("pointermove", (event) => {
			if (event.buttons) this.setHeight(event.clientY - this.rows.getBoundingClientRect().top);
		});
		this.divider.addEventListener("dblclick", () => this.setHeight(0));
		this.divider.addEventListener("keydown", (event) => {
			const by = { ArrowUp: -LANE, ArrowDown: LANE }[event.key];
			if (!by) return;
			this.setHeight(this.laneHeight + by);
			event.preventDefault();
		});
	}

	layout() {
		const ratio = window.devicePixelRatio || 1;
		const width = this.box.clientWidth;
		this.laneWidth = this.rows.clientWidth;
		this.label = width < 560 ? 84 : 150;
		const all = this.lanes.length * LANE;
		document.getElementById("rows-space").style.height = all + "px";
		this.laneHeight = Math.min(all, parseFloat(getComputedStyle(this.rows).maxHeight));
		this.divider.hidden = all <= this.laneHeight && !this.rows.style.maxHeight;
		this.divider.setAttribute("aria-valuenow", this.laneHeight);
		this.fit(this.overview, width, OVERVIEW, ratio);
		this.fit(this.canvas, this.laneWidth, this.laneHeight, ratio);
		this.paint();
	}

	fit(canvas, width, height, ratio) {
		canvas.style.height = height + "px";
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
	}

	paint() {
		this.paintOverview();
		this.paintLanes();
	}

	/* Overview and rows share one scale: the width of the rows without the scroll bar. */
	plotWidth() {
		return Math.max(this.laneWidth - this.label, 1);
	}

	timeAt(x) {
		const part = (x - this.label) / this.plotWidth();
		return Math.min(Math.max(part, 0), 1) * this.model.end;
	}

	xAt(time) {
		return this.label + (time / this.model.end) * this.plotWidth();
	}

	/* The samples of a thread by state, for each column of pixels. */
	columns(thread, into) {
		const model = this.model;
		const scale = this.plotWidth() / model.end;
		const states = STATES.length;
		const last = into.length / states - 1;
		const recording = model.recordingOf(thread);
		for (let i = model.runsOf[thread][0]; i < model.runsOf[thread][1]; i++) {
			if (model.runDepth && model.runDepth[i]) continue; /* within another one */
			const [from, to] = model.runSpan(i);
			const state = model.runState[i];
			const ready = model.runReady[i];
			const add = (begin, end, sign) => {
				for (let c = Math.floor(begin); c < end && c <= last; c++) {
					const part = sign * (Math.min(end, c + 1) - Math.max(begin, c));
					into[c * states + state] += part * (1 - ready);
					into[c * states + READY] += part * ready;
				}
			};
			add(from * scale, Math.max(to * scale, from * scale + 0.01), 1);
			for (const gap of model.gapsIn(recording, from, to)) add(gap[0] * scale, gap[1] * scale, -1);
		}
	}

	/* Of a row; kept if it has many threads. */
	columnsOf(lane) {
		const width = Math.ceil(this.plotWidth());
		if (lane.columns?.length === width * STATES.length) return lane.columns;
		const columns = new Float64Array(width * STATES.length);
		lane.threads.forEach((t) => this.columns(t, columns));
		if (lane.threads.length > 1) lane.columns = columns;
		return columns;
	}

	paintOverview() {
		const context = this.overview.getContext("2d");
		const colors = palette();
		const { chosen } = this.model;
		if (this.whole.chosen !== chosen) this.whole = { chosen, threads: chosen ? [...chosen] : this.order };
		context.fillStyle = colors.panel;
		context.fillRect(0, 0, this.box.clientWidth, OVERVIEW);
		const height = OVERVIEW - 14;
		const most = this.paintColumns(context, colors, this.columnsOf(this.whole), 2, height, 0);
		context.fillStyle = colors.soft;
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "top";
		context.textAlign = "left";
		const many = Math.round(most);
		context.fillText(many === 1 ? "1 thread" : `${many} threads`, 2, 2);
		this.paintAxis(context, height + 3);
		this.paintWindow(context, colors, OVERVIEW);
	}

	paintAxis(context, y) {
		if (this.model.isSnapshot) {
			context.fillText("snapshot", this.label, y);
			return;
		}
		paintAxis(context, [0, this.model.end], this.label, this.plotWidth(), y);
	}

	/* One column of stacked states per pixel; most: the value of the full height. */
	paintColumns(context, colors, columns, top, height, most) {
		const states = STATES.length;
		const count = columns.length / states;
		let full = most;
		if (!full) {
			for (let c = 0; c < count; c++) {
				let sum = 0;
				for (let s = 0; s < states; s++) sum += columns[c * states + s];
				full = Math.max(full, sum);
			}
		}
		const bottom = new Float64Array(count).fill(top + height);
		for (let s = 0; s < states && full > 0; s++) {
			context.fillStyle = colors.states[s];
			for (let c = 0; c < count; c++) {
				const high = (columns[c * states + s] / full) * height;
				if (high <= 0) continue;
				bottom[c] -= high;
				context.fillRect(this.label + c, bottom[c], 1, high);
			}
		}
		return full;
	}

	paintLanes() {
		const context = this.canvas.getContext("2d");
		const colors = palette();
		const scrolled = this.rows.scrollTop;
		context.fillStyle = colors.panel;
		context.fillRect(0, 0, this.laneWidth, this.laneHeight);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		const first = Math.floor(scrolled / LANE);
		for (let i = first; i < this.lanes.length; i++) {
			const y = i * LANE - scrolled;
			if (y >= this.laneHeight) break;
			this.paintLane(context, colors, this.lanes[i], y);
		}
		context.globalAlpha = 1;
		this.paintWindow(context, colors, this.laneHeight);
	}

	paintLane(context, colors, lane, y) {
		const { model } = this;
		const [thread] = lane.threads;
		context.globalAlpha = lane.threads.some((t) => model.isChosen(t)) ? 1 : 0.3;
		if (!lane.key && model.isEvent(model.runsOf[thread][0])) this.paintScopes(context, thread, y + 1);
		else {
			this.paintColumns(context, colors, this.columnsOf(lane), y + 1, LANE - 2, lane.threads.length);
			this.paintGaps(context, colors, thread, y + LANE / 2);
		}
		context.fillStyle = model.chosen && lane.threads.some((t) => model.chosen.has(t)) ? colors.accent : colors.fullInk;
		if (!lane.key) {
			context.fillText(this.shortLabel(context, thread, lane.indent), 2 + lane.indent, y + LANE / 2);
			return;
		}
		context.fillText(this.opened.has(lane.key) ? "▾" : "▸", 2, y + LANE / 2);
		context.fillText(this.cut(context, lane.name, ` (${lane.threads.length})`, SIGN), 2 + SIGN, y + LANE / 2);
	}

	/* A line where ticks were missed. */
	paintGaps(context, colors, thread, y) {
		context.fillStyle = colors.soft;
		for (const [from, to] of this.model.gapsIn(this.model.recordingOf(thread), 0, this.model.end))
			context.fillRect(this.xAt(from), y, this.xAt(to) - this.xAt(from), 1);
	}

	/* The scopes of a thread, inner ones within outer ones; a hit is a line. */
	paintScopes(context, thread, y) {
		const { model } = this;
		for (let i = model.runsOf[thread][0]; i < model.runsOf[thread][1]; i++) {
			const [from, to] = model.runSpan(i);
			const inset = Math.min(model.runDepth[i] * 2, LANE - 5);
			context.fillStyle = `hsl(${(model.runProbe[i] * 67 + 210) % 360} 55% 55%)`;
			context.fillRect(this.xAt(from), y + inset, Math.max(this.xAt(to) - this.xAt(from), 1), LANE - 2 - inset);
		}
	}

	fits(context, text, indent) {
		return context.measureText(text).width <= this.label - 6 - indent;
	}

	/* Shortens what does not fit: first the process, then a part of the name. */
	shortLabel(context, thread, indent = 0) {
		const whole = threadLabel(this.model, thread);
		const { name, tid } = this.model.threads[thread];
		return this.fits(context, whole, indent) ? whole : this.cut(context, name, ` ${tid}`, indent);
	}

	cut(context, name, end, indent) {
		if (this.fits(context, name + end, indent)) return name + end;
		const letters = [...name];
		while (letters.length && !this.fits(context, `${letters.join("")}…${end}`, indent)) letters.pop();
		return `${letters.join("")}…${end}`;
	}

	paintWindow(context, colors, height) {
		const window = this.drag ? this.drag.window : this.model.window;
		if (!window) return;
		const from = this.xAt(window[0]);
		const to = this.xAt(window[1]);
		context.fillStyle = colors.shade;
		context.fillRect(this.label, 0, from - this.label, height);
		context.fillRect(to, 0, this.laneWidth - to, height);
		context.fillStyle = colors.accent;
		context.fillRect(from - 0.5, 0, 1, height);
		context.fillRect(to - 0.5, 0, 1, height);
	}

	laneAt(event) {
		const bounds = this.rows.getBoundingClientRect();
		if (event.clientY < bounds.top || event.clientY >= bounds.bottom) return undefined;
		return this.lanes[Math.floor((event.clientY - bounds.top + this.rows.scrollTop) / LANE)];
	}

	down(event) {
		const x = event.clientX - this.box.getBoundingClientRect().left;
		if (event.button !== 0 || x > this.laneWidth) return;
		if (x < this.label) {
			const lane = this.laneAt(event);
			if (lane?.key && x < 2 + SIGN) this.toggle(lane);
			else if (lane) this.page.clickThreads(lane.threads, event.ctrlKey || event.metaKey || event.shiftKey);
			return;
		}
		if (this.model.isSnapshot) return;
		this.drag = { x, window: null };
		this.box.setPointerCapture(event.pointerId);
	}

	move(event) {
		const x = event.clientX - this.box.getBoundingClientRect().left;
		if (!this.drag) {
			this.tip(event, x);
			return;
		}
		if (Math.abs(x - this.drag.x) < 3 && !this.drag.window) return;
		showTip(null);
		const times = [this.timeAt(this.drag.x), this.timeAt(x)];
		this.drag.window = [Math.min(...times), Math.max(...times)];
		this.page.selectWindow(this.drag.window);
	}

	up() {
		const drag = this.drag;
		this.drag = null;
		if (drag && !drag.window) this.page.selectWindow(null);
	}

	tip(event, x) {
		const { model } = this;
		const lane = this.laneAt(event);
		const at = this.timeAt(x);
		const time = model.isSnapshot ? "snapshot" : (at / 1e6).toFixed(3) + " s";
		if (!lane) return showTip(x < this.label ? null : [time, ""], event);
		const [thread] = lane.threads;
		const isName = x < this.label;
		const label = lane.key ? `${count(lane.threads.length)} threads ${lane.name}` : threadLabel(model, thread);
		const { tid, process } = model.threads[thread];
		const scope = isName || lane.key ? -1 : model.scopeAt(thread, at, model.end / this.plotWidth());
		if (scope >= 0) {
			const span = model.runDuration[scope] ? `, ${timeText(model.runDuration[scope] * 1000)}` : "";
			return showTip([`${model.data.probes[model.runProbe[scope]]}${span}`, `${label}, ${time}`], event);
		}
		if (!isName && model.gapsIn(model.recordingOf(thread), at, at + 1).length)
			return showTip([label, `no samples, ${time}: missed ticks`], event);
		const where = `${lane.key ? "" : `thread ${tid} of `}process ${processLabel(model, process)}`;
		return showTip([label, where + (!isName ? ", " + time : lane.key ? "" : cpuText(model.threads[thread]))], event);
	}

	key(event) {
		const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
		const lane = this.lanes[this.chosenLane()];
		if (by) this.step(by);
		if (event.key === "Enter" && lane?.key) this.toggle(lane);
		if (by) event.preventDefault();
		if (this.model.isSnapshot || (event.key !== "ArrowLeft" && event.key !== "ArrowRight")) return;
		const sign = event.key === "ArrowLeft" ? -1 : 1;
		const end = this.model.end;
		const window = this.model.window ? [...this.model.window] : [0, end];
		const step = sign * end / 100;
		if (event.shiftKey) window[1] = Math.min(Math.max(window[1] + step, window[0] + end / 1000), end);
		else if (!this.model.window) window[sign > 0 ? 0 : 1] += step;
		else {
			const move = Math.max(-window[0], Math.min(step, end - window[1]));
			window[0] += move;
			window[1] += move;
		}
		this.page.selectWindow(window);
		event.preventDefault();
	}
}

/* The times of a span, at most one for each 90 pixels. */
function paintAxis(context, [from, to], left, width, y) {
	/* ticks of the axis are at least a microsecond apart */
	const step = Math.max(niceStep((to - from) / 1e6, Math.max(width / 90, 2)), 1e-6);
	for (let t = Math.ceil(from / 1e6 / step) * step; t <= to / 1e6; t += step) {
		const x = left + ((t * 1e6 - from) / (to - from)) * width;
		context.textAlign = x + 40 > left + width ? "right" : "left";
		context.fillText(`${Number(t.toFixed(6))} s`, x, y);
		context.fillRect(x, y - 3, 1, 3);
	}
	context.textAlign = "left";
}

function niceStep(whole, count) {
	const rough = whole / count;
	const power = 10 ** Math.floor(Math.log10(rough));
	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power * 10;
}
