/* Threads over time by state: an overview, and one row per thread. Dragging selects a time
   window. */

const OVERVIEW = 46;
const LANE = 16;

/* How long a thread was on a CPU, and waited for one. */
function cpuText(thread) {
	const seconds = (ns) => (ns / 1e9).toFixed(3) + " s";
	if (!thread.cpu_ns && !thread.ready_ns) return "";
	return `: ${seconds(thread.cpu_ns)} on a CPU, ${seconds(thread.ready_ns)} waiting for one`;
}

class Timeline {
	constructor(model, onWindow, onThread) {
		this.model = model;
		this.onWindow = onWindow;
		this.onThread = onThread;
		this.box = document.getElementById("time");
		this.rows = document.getElementById("rows");
		this.overview = document.getElementById("overview");
		this.lanes = document.getElementById("rows-canvas");
		this.order = this.sorted();
		this.drag = null;
		this.listen();
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
	}

	layout() {
		const ratio = window.devicePixelRatio || 1;
		const width = this.box.clientWidth;
		this.laneWidth = this.rows.clientWidth;
		this.label = width < 560 ? 84 : 150;
		document.getElementById("rows-space").style.height = this.order.length * LANE + "px";
		this.laneHeight = Math.min(this.order.length * LANE, parseFloat(getComputedStyle(this.rows).maxHeight));
		this.fit(this.overview, width, OVERVIEW, ratio);
		this.fit(this.lanes, this.laneWidth, this.laneHeight, ratio);
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

	wanted(thread) {
		return this.model.isChosen(thread);
	}

	paintOverview() {
		const context = this.overview.getContext("2d");
		const colors = palette();
		const width = this.plotWidth();
		if (this.sumOf !== this.model.chosen || this.sumWidth !== Math.ceil(width)) {
			this.sumOf = this.model.chosen;
			this.sumWidth = Math.ceil(width);
			this.sum = new Float64Array(Math.ceil(width) * STATES.length);
			this.order.forEach((t) => { if (this.wanted(t)) this.columns(t, this.sum); });
		}
		context.fillStyle = colors.panel;
		context.fillRect(0, 0, this.box.clientWidth, OVERVIEW);
		const height = OVERVIEW - 14;
		const most = this.paintColumns(context, colors, this.sum, 2, height, 0);
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
		/* ticks of the axis are at least a microsecond apart */
		const step = Math.max(niceStep(this.model.end / 1e6, Math.max(this.plotWidth() / 90, 2)), 1e-6);
		for (let t = 0; t <= this.model.end / 1e6; t += step) {
			const x = this.xAt(t * 1e6);
			const text = `${Number(t.toFixed(6))} s`;
			context.textAlign = x + 40 > this.laneWidth ? "right" : "left";
			context.fillText(text, x, y);
			context.fillRect(x, y - 3, 1, 3);
		}
		context.textAlign = "left";
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
		const context = this.lanes.getContext("2d");
		const colors = palette();
		const scrolled = this.rows.scrollTop;
		context.fillStyle = colors.panel;
		context.fillRect(0, 0, this.laneWidth, this.laneHeight);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		const first = Math.floor(scrolled / LANE);
		for (let lane = first; lane < this.order.length; lane++) {
			const y = lane * LANE - scrolled;
			if (y >= this.laneHeight) break;
			this.paintLane(context, colors, this.order[lane], y);
		}
		context.globalAlpha = 1;
		this.paintWindow(context, colors, this.laneHeight);
	}

	paintLane(context, colors, thread, y) {
		context.globalAlpha = this.wanted(thread) ? 1 : 0.3;
		if (this.model.isEvent(this.model.runsOf[thread][0])) this.paintScopes(context, thread, y + 1);
		else {
			const columns = new Float64Array(Math.ceil(this.plotWidth()) * STATES.length);
			this.columns(thread, columns);
			this.paintColumns(context, colors, columns, y + 1, LANE - 2, 1);
			this.paintGaps(context, colors, thread, y + LANE / 2);
		}
		context.fillStyle = this.model.chosen?.has(thread) ? colors.accent : colors.fullInk;
		context.fillText(this.shortLabel(context, thread), 2, y + LANE / 2);
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

	/* Shortens what does not fit: first the process, then a part of the name, then the id. */
	shortLabel(context, thread) {
		const fits = (text) => context.measureText(text).width <= this.label - 6;
		const whole = threadLabel(this.model, thread);
		if (fits(whole)) return whole;
		const { name, tid } = this.model.threads[thread];
		if (fits(`${name} ${tid}`)) return `${name} ${tid}`;
		const letters = [...name];
		while (letters.length && !fits(`${letters.join("")}… ${tid}`)) letters.pop();
		return `${letters.join("")}… ${tid}`;
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
		if (event.clientY < bounds.top || event.clientY >= bounds.bottom) return -1;
		const lane = Math.floor((event.clientY - bounds.top + this.rows.scrollTop) / LANE);
		return lane < this.order.length ? this.order[lane] : -1;
	}

	down(event) {
		const x = event.clientX - this.box.getBoundingClientRect().left;
		if (event.button !== 0 || x > this.laneWidth) return;
		if (x < this.label) {
			const thread = this.laneAt(event);
			if (thread >= 0) this.onThread(thread, event.ctrlKey || event.metaKey || event.shiftKey);
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
		this.onWindow(this.drag.window);
	}

	up() {
		const drag = this.drag;
		this.drag = null;
		if (drag && !drag.window) this.onWindow(null);
	}

	tip(event, x) {
		const thread = this.laneAt(event);
		const time = this.model.isSnapshot ? "snapshot" : (this.timeAt(x) / 1e6).toFixed(3) + " s";
		const scope = thread < 0 || x < this.label ? -1 : this.model.scopeAt(thread, this.timeAt(x), this.model.end / this.plotWidth());
		if (scope >= 0) {
			const span = this.model.runDuration[scope] ? `, ${timeText(this.model.runDuration[scope] * 1000)}` : "";
			showTip([`${this.model.data.probes[this.model.runProbe[scope]]}${span}`, `${threadLabel(this.model, thread)}, ${time}`], event);
		} else if (thread < 0) showTip(x < this.label ? null : [time, ""], event);
		else if (x >= this.label && this.model.gapsIn(this.model.recordingOf(thread), this.timeAt(x), this.timeAt(x) + 1).length)
			showTip([threadLabel(this.model, thread), `no samples, ${time}: missed ticks`], event);
		else showTip([threadLabel(this.model, thread), `thread ${this.model.threads[thread].tid} of process ` +
			`${processLabel(this.model, this.model.threads[thread].process)}${x < this.label ? cpuText(this.model.threads[thread]) : ", " + time}`], event);
	}

	key(event) {
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
		this.onWindow(window);
		event.preventDefault();
	}
}

function niceStep(whole, count) {
	const rough = whole / count;
	const power = 10 ** Math.floor(Math.log10(rough));
	return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power * 10;
}
