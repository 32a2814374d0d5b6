/* The page: the selection, the views and the keys. */

const byId = (id) => document.getElementById(id);
const count = (n) => Math.round(n).toLocaleString("en-US");

/* What is counted: samples, or of traces hits or nanoseconds. */
const unit = { name: "samples" };
const amount = (n) => (unit.name === "ns" ? timeText(n) : `${count(n)} ${unit.name}`);
/* The same where the unit follows later on. */
const part = (n) => (unit.name === "ns" ? amount(n) : count(n));
const timeText = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toFixed(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e3).toFixed(3)} us`);
const share = (part, whole) => {
	const percent = whole > 0 ? (100 * part) / whole : 0;
	return (percent >= 10 || percent === 0 ? percent.toFixed(1) : percent.toPrecision(2)) + " %";
};

function processLabel(model, p) {
	const process = model.processes[p];
	const host = model.data.recordings.length > 1 ? model.data.recordings[process.recording].host : "";
	return `${process.name} ${process.pid}${host ? " on " + host : ""}`;
}

function threadLabel(model, t) {
	const thread = model.threads[t];
	const name = `${thread.name} ${thread.tid}`;
	return model.processes.length > 1 ? `${name} (${processLabel(model, thread.process)})` : name;
}

/* Colours of the style sheet, for canvases; read again after a change of the theme. */
let knownPalette = null;
const RUNTIME_HUES = { python: 215, javascript: 50, java: 10, go: 185 };

function palette() {
	if (knownPalette) return knownPalette;
	const style = getComputedStyle(document.documentElement);
	const value = (name) => style.getPropertyValue("--" + name).trim();
	const saturation = value("frame-saturation");
	const light = parseFloat(value("frame-light"));
	const known = new Map();
	knownPalette = {
		panel: value("panel"), soft: value("soft"), fullInk: value("ink"), ink: value("frame-ink"), shade: value("shade"),
		accent: value("accent"), match: value("match"), matchInk: value("match-ink"), none: value("frame-none"),
		states: STATES.map(({ color }) => value("state-" + color)),
		/* each language of a runtime has a hue of its own, and more of it */
		runtime: (kind, f) => `hsl(${RUNTIME_HUES[kind] ?? 300} 75% ${light + (f % 5) * 1.6 - 3.2}%)`,
		/* blue is less, red more than before; change: from -1 to 1 */
		change: (change) => `hsl(${change < 0 ? 215 : 5} ${Math.round(Math.abs(change) * 75)}% ${light}%)`,
		/* the hue shows the module; functions of one module differ slightly */
		frame: (module, f) => {
			if (module < 0) return value("frame-none");
			const key = module * 5 + (f % 5);
			if (!known.has(key)) known.set(key, `hsl(${(module * 137 + 28) % 360} ${saturation} ${light + (f % 5) * 1.6 - 3.2}%)`);
			return known.get(key);
		},
	};
	return knownPalette;
}

const VIEWS = ["flame", "calls", "functions", "modules", "waits", "chart"];

class Page {
	constructor(data) {
		const model = this.model = new Model(data);
		this.timeline = new Timeline(model, this);
		this.flame = new Flame("flame", model, (node) => this.zoomTo(node), () => this.selectNode());
		this.chart = new Chart(model, this.timeline.order, () => this.selectNode(), (w) => this.selectWindow(w));
		this.calls = new CallTree(model, () => this.selectNode());
		this.functions = new FunctionTable(model, (f) => this.selectFunction(f));
		this.sandwich = new Sandwich(model, (f) => this.selectFunction(f));
		this.modules = new ModuleTable(model);
		this.graph = new Graph(model, (t) => this.openThread(t));
		this.waits = new WaitTable(model, (row) => this.selectWait(row), (row, f) => {
			this.setWait(row);
			this.selectFunction(f);
		});
		this.link = new Link(this);
		this.view = "flame";
		this.selected = -1; /* in the table of functions; -1: none */
		this.head();
		this.fillThreads();
		this.legend();
		this.listen();
		this.resize();
		byId("tab-waits").hidden = this.graph.isEmpty && model.waits.isEmpty;
		byId("tab-chart").hidden = model.isSnapshot || model.runDepth !== null || !model.threads.length;
		byId("compare").hidden = model.data.recordings.length !== 2;
		byId("graph-part").hidden = this.graph.isEmpty;
		/* such as a recording of CPUs: there is no choice */
		byId("show").hidden = model.runClass.every((one) => one === ON_CPU);
		if (!this.graph.isEmpty) this.graph.draw();
		const wanted = this.link.read();
		if (wanted) this.restore(wanted);
		else this.refresh();
		/* waits are the first question about a snapshot */
		if (!wanted && !this.graph.isEmpty) this.selectView("waits");
	}

	head() {
		const { recordings, processes, notes, title } = this.model.data;
		byId("title").textContent = title;
		document.title = title;
		const samples = this.model.runCount.reduce((sum, n) => sum + n, 0);
		const many = recordings.length > 1 ? recordings.length + " recordings, " : "";
		const span = this.model.isSnapshot ? "snapshot," : `${(this.model.end / 1e6).toFixed(2)} s from`;
		const parts = [
			`${many}${span} ${recordings[0] ? recordings[0].start : ""}`,
			`${count(processes.length)} process${processes.length === 1 ? "" : "es"}`,
			`${count(this.model.threads.length)} thread${this.model.threads.length === 1 ? "" : "s"}`,
			`${count(samples)} ${this.model.runDepth ? "hits" : "samples"}`,
		];
		byId("time-window").hidden = this.model.isSnapshot;
		byId("find").parentElement.hidden = this.model.threads.length < POOL;
		byId("summary").textContent = parts.join(" · ");
		byId("notes").hidden = !notes.length;
		byId("notes").replaceChildren(...notes.map((note) => {
			const item = document.createElement("li");
			item.textContent = note;
			return item;
		}));
	}

	/* All, pools of threads, and each thread; only those that the search for threads finds. */
	fillThreads() {
		const { model } = this;
		const { found } = this.timeline;
		const pools = poolsOf(model, found);
		this.threadSets = [null];
		const options = [new Option("all", "0")];
		const add = (text, threads) => {
			options.push(new Option(text, String(this.threadSets.length)));
			this.threadSets.push(threads);
		};
		for (const { name, process, threads } of pools) {
			const where = model.processes.length > 1 ? ` (${processLabel(model, process)})` : "";
			if (threads.length > 1 && pools.length > 1) add(`${count(threads.length)} threads ${name}${where}`, threads);
		}
		for (const t of found) add(threadLabel(model, t), [t]);
		const many = new Option("", "-1");
		many.hidden = true;
		byId("thread").replaceChildren(...options, many);
	}

	/* Shows only threads with this name in the list; on Enter they are selected. */
	findThreads() {
		this.timeline.find(matcher(byId("find").value));
		this.fillThreads();
		this.showThreads();
		this.resize();
	}

	showThreads() {
		const { chosen } = this.model;
		const select = byId("thread");
		const many = select.options[select.options.length - 1];
		many.text = chosen ? `${count(chosen.size)} threads` : "";
		select.value = String(this.threadSets.findIndex((threads) => (threads && chosen ? isSame(chosen, threads) : threads === chosen)));
	}

	/* The states that occur, and what a gap is. */
	legend() {
		const { runState, runReady } = this.model;
		const found = STATES.filter((_, i) => (i === READY ? runReady.some((part) => part > 0) : runState.includes(i)));
		const items = found.map(({ name, color }) => {
			const item = document.createElement("span");
			const sign = document.createElement("i");
			sign.style.background = `var(--state-${color})`;
			item.append(sign, name);
			return item;
		});
		byId("legend").replaceChildren(...items, ...this.gapLegend());
	}

	gapLegend() {
		const { gaps } = this.model;
		const many = gaps.reduce((sum, { begins }) => sum + begins.length, 0);
		if (!many) return [];
		const time = gaps.reduce((sum, { begins, ends }) => sum + ends.reduce((all, end, i) => all + end - begins[i], 0), 0);
		const item = document.createElement("span");
		const sign = document.createElement("i");
		sign.className = "gap";
		item.title = "The recorder took no samples in this time, so what the threads did is not known";
		item.append(sign, `missed ticks: ${count(many)} gap${many > 1 ? "s" : ""}, ${(time / 1e6).toFixed(2)} s`);
		return [item];
	}

	listen() {
		const click = (id, action) => byId(id).addEventListener("click", action);
		byId("thread").addEventListener("change", (event) => {
			const threads = this.threadSets[event.target.value];
			this.selectThreads(threads ? new Set(threads) : null);
		});
		byId("find").addEventListener("input", () => this.findThreads());
		byId("find").addEventListener("keydown", (event) => {
			const { found, order } = this.timeline;
			if (event.key === "Enter" && found.length) this.selectThreads(found === order ? null : new Set(found));
		});
		SHOWN.forEach((name, shows) => click("show-" + name, () => this.show(shows)));
		click("invert", () => this.set(this.model, "inverted", !this.model.inverted));
		click("heavy", () => this.set(this.flame, "byWeight", !this.flame.byWeight));
		click("flip", () => this.flip(!this.flame.rootAtBottom));
		click("compare", () => this.set(this.model, "compares", !this.model.compares));
		click("recursion", () => this.toggle("recursion"));
		click("native", () => this.toggle("native"));
		click("only-matches", () => this.set(this.model, "onlyMatches", !this.model.onlyMatches));
		click("unzoom", () => this.zoomTo(0));
		for (const type of ["svg", "png"]) click("save-" + type, () => this.savePicture(type));
		click("whole", () => this.selectWindow(null));
		click("open-function", () => this.selectFunction(this.selectedFunction()));
		click("focus", () => this.change("focus"));
		click("drop", () => this.change("drop"));
		click("exclude", () => this.change("exclude"));
		byId("search").addEventListener("input", () => this.search());
		for (const id of ["from", "to"]) byId(id).addEventListener("change", () => this.typedWindow());
		document.querySelectorAll("[role=tab]").forEach((tab) => {
			tab.addEventListener("click", () => this.selectView(tab.id.slice(4)));
			tab.addEventListener("keydown", (event) => this.tabKey(event));
		});
		click("theme", () => this.nextTheme());
		click("help-open", () => byId("help").showModal());
		click("help-close", () => byId("help").close());
		window.addEventListener("resize", () => this.resize());
		window.addEventListener("pagehide", () => this.link.write());
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
		document.addEventListener("keydown", (event) => this.key(event));
		document.addEventListener("copy", (event) => this.copy(event));
		hideTipsWithPointer();
	}

	resize() {
		this.timeline.layout();
		this.flame.layout();
		this.sandwich.layout();
		this.chart.layout();
	}

	repaint() {
		knownPalette = null;
		this.timeline.paint();
		for (const flame of [this.flame, this.chart, this.sandwich.callers, this.sandwich.callees]) flame.paint();
	}

	/* Updates what depends on the selection, at most once per animation frame. */
	changed() {
		if (this.pending) return;
		this.pending = requestAnimationFrame(() => { this.pending = 0; this.refresh(); });
	}

	refresh() {
		this.tree = this.model.recountBoth();
		this.flame.setTree(this.tree);
		this.timeline.paint();
		this.showSwitches();
		this.showCounts();
		this.updateView();
		if (document.activeElement !== byId("from") && document.activeElement !== byId("to")) this.writeWindow();
		this.link.changed();
	}

	showSwitches() {
		const { model, flame } = this;
		const press = (id, on) => byId(id).setAttribute("aria-pressed", String(on));
		SHOWN.forEach((name, shows) => press("show-" + name, model.shows === shows));
		press("invert", model.inverted);
		press("heavy", flame.byWeight);
		press("compare", model.compares);
		press("flip", flame.rootAtBottom);
		for (const id of ["recursion", "native"]) press(id, model.changes.some(({ kind }) => kind === id));
		byId("native").hidden = !model.runtimes.size;
		press("only-matches", model.onlyMatches);
		byId("only-matches").hidden = !model.matches;
		byId("unzoom").disabled = flame.zoom === 0;
		this.showThreads();
		this.showChanges();
	}

	/* How many samples are counted, and how many are not, and why. */
	showCounts() {
		const { model } = this;
		const [cpu, waiting, idle] = model.byClass;
		const all = cpu + waiting + idle;
		const sums = [cpu, cpu + waiting, all];
		const texts = ["On CPU", "Without idle", "All"];
		SHOWN.forEach((name, i) => { byId("show-" + name).textContent = i < 2 ? `${texts[i]} ${share(sums[i], all)}` : texts[i]; });
		const hidden = [];
		if (model.shows < WAITING && waiting) hidden.push(`${count(waiting)} waiting (${share(waiting, all)})`);
		if (model.shows < IDLE && idle) hidden.push(`${count(idle)} idle (${share(idle, all)})`);
		const dropped = sums[model.shows] - model.unfiltered;
		if (dropped) hidden.push(`${count(dropped)} by focus or exclusion`);
		if (model.onlyMatches && model.unfiltered > model.matched) hidden.push(`${count(model.unfiltered - model.matched)} without a match`);
		const ready = Math.round(model.ready) ? `; about ${count(model.ready)} waited for a CPU` : "";
		byId("counts").textContent = `${part(this.tree.total[0])} of ${amount(all)}${ready}` +
			(hidden.length ? `; hidden: ${hidden.join(", ")}` : "");
		byId("matched").textContent = model.matches ? share(model.matched, model.unfiltered) : "";
		byId("matched").title = model.matches ? `${part(model.matched)} of ${amount(model.unfiltered)}` : "";
	}

	/* One button for each change of the tree, which undoes it. */
	showChanges() {
		const words = { focus: "Focus", drop: "Dropped", exclude: "Excluded" };
		const buttons = this.model.changes.map(({ kind, f }, i) => {
			if (kind === "recursion" || kind === "native") return null;
			const button = document.createElement("button");
			button.type = "button";
			button.className = "change";
			button.title = "Undo: " + this.model.names[f];
			button.textContent = `${words[kind]}: ${shorten(this.model.names[f], 40)} ×`;
			button.addEventListener("click", () => { this.model.undoChange(i); this.changed(); });
			return button;
		});
		if (this.model.wait >= 0) {
			const button = document.createElement("button");
			button.type = "button";
			button.className = "change";
			button.title = "Undo: only the stacks with this wait";
			button.textContent = `Waits: ${shorten(this.model.waits.label(this.model.wait), 40)} ×`;
			button.addEventListener("click", () => this.setWait(-1));
			buttons.push(button);
		}
		byId("changes").replaceChildren(...buttons.filter(Boolean));
	}

	writeWindow() {
		const window = this.model.window || [0, this.model.end];
		byId("from").value = (window[0] / 1e6).toFixed(3);
		byId("to").value = (window[1] / 1e6).toFixed(3);
	}

	updateView() {
		const { model, view } = this;
		const all = this.tree.total[0];
		if (view === "calls") this.calls.update(this.tree);
		if (view === "chart") this.chart.setTree(model.shaped);
		byId("save").hidden = !this.pictured();
		if (view === "functions" || view === "modules") {
			const [self, total] = model.byFunction();
			if (view === "modules") this.modules.update(self, all);
			else this.updateFunctions(self, total, all);
		}
		if (view === "waits" && !model.waits.isEmpty) this.waits.update();
		this.showSelected();
	}

	updateFunctions(self, total, all) {
		/* the hottest function; what is in no module may be the reason of an incomplete stack */
		if (this.selected < 0) this.selected = greatest(self.map((samples, f) => (this.model.moduleOf[f] < 0 ? 0 : samples)));
		if (this.selected < 0) this.selected = greatest(self);
		this.functions.selected = this.selected;
		this.functions.update(self, total, all);
		this.sandwich.update(this.selected, self, total, all);
	}

	/* What draws the picture of this view; undefined: it has none. */
	pictured() {
		const graph = this.graph.isEmpty ? undefined : this.graph;
		return { flame: this.flame, chart: this.chart, waits: graph }[this.view];
	}

	savePicture(type) {
		const { title } = this.model.data;
		savePicture(this.pictured().picture(), `${title}-${this.view}`, type);
	}

	/* The tree of this view, whose nodes are selected. */
	get viewTree() {
		return this.view === "chart" ? this.chart.tree : this.tree;
	}

	/* The node that is selected in this view; -1: it shows no nodes. */
	selectedNode() {
		return { flame: this.flame.current, calls: this.calls.current, chart: this.chart.current }[this.view] ?? -1;
	}

	/* The function that buttons and keys act on; -1: none. */
	selectedFunction() {
		const node = this.selectedNode();
		return node > 0 ? this.viewTree.func[node] : node < 0 ? this.selected : -1;
	}

	showSelected() {
		const node = this.selectedNode();
		byId("selection").hidden = node < 0 && this.view !== "functions";
		byId("open-function").hidden = byId("detail").hidden = node < 0;
		if (node >= 0) setDetail(describeNode(this.model, this.viewTree, node, this.view === "chart" ? 0 : this.flame.zoom));
		for (const id of ["open-function", "focus", "drop", "exclude"]) byId(id).disabled = this.selectedFunction() < 0;
	}

	search() {
		const { model } = this;
		const test = matcher(byId("search").value);
		model.matches = test && Uint8Array.from(model.names, (name, f) => (test(name) || test(model.moduleName(f)) ? 1 : 0));
		this.changed();
	}

	set(object, field, value) {
		object[field] = value;
		this.changed();
	}

	show(shows) {
		this.set(this.model, "shows", shows);
	}

	flip(atBottom) {
		this.flame.rootAtBottom = atBottom;
		this.refresh();
		this.flame.box.scrollTop = atBottom ? this.flame.all : 0;
	}

	/* kind: see CHANGES, of the selected function. */
	change(kind) {
		const f = this.selectedFunction();
		if (f < 0) return;
		this.model.change(kind, f);
		if (kind !== "focus") this.selected = -1;
		this.changed();
	}

	toggle(what) {
		const at = this.model.changes.findIndex(({ kind }) => kind === what);
		if (at >= 0) this.model.undoChange(at);
		else this.model.change(what, -1);
		this.changed();
	}

	zoomTo(node) {
		this.flame.zoomTo(node);
		byId("unzoom").disabled = node === 0;
		this.link.changed();
	}

	/* A frame of the flame graph or a row of the call tree was selected. */
	selectNode() {
		this.showSelected();
		this.link.changed();
	}

	/* f: -1 leaves the selection as it is. */
	selectFunction(f) {
		if (f >= 0) this.selected = f;
		this.selectView("functions");
	}

	selectWindow(window) {
		this.model.window = window;
		this.changed();
	}

	typedWindow() {
		const times = ["from", "to"].map((id) => Number(byId(id).value) * 1e6);
		const from = Math.min(Math.max(times[0] || 0, 0), this.model.end);
		const to = Math.min(Math.max(times[1] || this.model.end, from), this.model.end);
		this.selectWindow(from <= 0 && to >= this.model.end ? null : [from, to]);
	}

	selectThreads(threads) {
		this.model.chosen = threads;
		this.changed();
	}

	/* Selects threads, or adds them to those that are selected; the same once more undoes it. */
	clickThreads(threads, adds) {
		const before = this.model.chosen || new Set();
		const chosen = new Set(adds ? before : []);
		if (threads.every((t) => before.has(t)) && (adds || before.size === threads.length)) threads.forEach((t) => chosen.delete(t));
		else threads.forEach((t) => chosen.add(t));
		this.selectThreads(chosen.size ? chosen : null);
	}

	/* Counts only the samples of a row of the waits, of which all are shown; -1: of none. */
	setWait(row) {
		const { model } = this;
		if (row >= 0 && model.wait < 0) this.showedBefore = model.shows;
		if (row >= 0) model.shows = IDLE;
		else if (model.shows === IDLE) model.shows = this.showedBefore ?? model.shows;
		model.wait = row;
		this.changed();
	}

	/* Shows the stacks of a row of the waits. */
	selectWait(row) {
		this.setWait(row);
		this.selectView("flame");
	}

	/* Shows the stack of a waiting thread; -1: of all. */
	openThread(thread) {
		this.model.shows = IDLE;
		this.selectThreads(thread < 0 ? null : new Set([thread]));
		this.selectView("flame");
	}

	selectView(view) {
		this.view = view;
		document.querySelectorAll("[role=tab]").forEach((tab) => {
			const selected = tab.id === "tab-" + view;
			tab.setAttribute("aria-selected", String(selected));
			tab.tabIndex = selected ? 0 : -1;
			byId(tab.getAttribute("aria-controls")).hidden = !selected;
		});
		this.updateView();
		this.resize();
		this.link.changed();
	}

	/* Shows what a link says, see Link.read(). */
	restore(wanted) {
		const { model, flame } = this;
		if (!wanted) return;
		for (const key of ["chosen", "window", "onlyMatches", "inverted", "changes", "wait", "compares"]) model[key] = wanted[key];
		if (wanted.shows >= 0) model.shows = wanted.shows;
		model.shapedTree = null;
		flame.byWeight = wanted.byWeight;
		flame.rootAtBottom = wanted.rootAtBottom;
		this.selected = wanted.selected;
		byId("search").value = wanted.search;
		this.search();
		this.refresh();
		if (wanted.zoom) flame.zoomTo(nodeOfKey(model, this.tree, wanted.zoom));
		else flame.zoomTo(0);
		this.selected = wanted.selected;
		const known = VIEWS.includes(wanted.view) && !byId("tab-" + wanted.view).hidden;
		this.selectView(known ? wanted.view : "flame");
		this.showSwitches();
	}

	tabKey(event) {
		const tabs = [...document.querySelectorAll("[role=tab]:not([hidden])")];
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (!step) return;
		const tab = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
		this.selectView(tab.id.slice(4));
		tab.focus();
		event.preventDefault();
	}

	nextTheme() {
		const root = document.documentElement;
		const next = { undefined: "light", light: "dark" }[root.dataset.theme];
		if (next) root.dataset.theme = next;
		else delete root.dataset.theme;
		byId("theme").textContent = "Theme: " + (next || "system");
		this.repaint();
	}

	escape() {
		const search = document.activeElement === byId("find") ? byId("find") : byId("search");
		if (search.value) {
			search.value = "";
			search.dispatchEvent(new Event("input"));
		} else if (document.activeElement === search) search.blur();
		else if (this.flame.zoom) this.zoomTo(0);
		else if (this.model.changes.length) {
			this.model.undoChange(this.model.changes.length - 1);
			this.changed();
		} else if (this.model.wait >= 0) this.setWait(-1);
		else this.selectWindow(null);
	}

	/* Copies the stack of the selected frame, unless text is selected. */
	copy(event) {
		const node = this.selectedNode();
		if (node <= 0 || /^(INPUT|SELECT)$/.test(event.target.tagName) || String(getSelection())) return;
		event.clipboardData.setData("text/plain", stackText(this.model, this.viewTree, node));
		event.preventDefault();
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
		if (event.key === "Escape") return void this.escape();
		if (/^(INPUT|SELECT)$/.test(event.target.tagName)) return;
		const press = (id) => () => byId(id).click();
		const actions = {
			"/": () => byId("search").focus(),
			"?": () => byId("help").showModal(),
			c: () => this.show((this.model.shows + 1) % SHOWN.length),
			i: press("invert"),
			h: press("heavy"),
			b: press("flip"),
			r: press("recursion"),
			n: press("native"),
			m: press("only-matches"),
			f: press("focus"),
			d: press("drop"),
			x: press("exclude"),
			s: () => this.selectFunction(this.selectedFunction()),
			t: () => this.nextTheme(),
			w: () => { this.selectThreads(null); this.selectWindow(null); },
			"[": () => this.timeline.step(-1),
			"]": () => this.timeline.step(1),
		};
		VIEWS.forEach((view, i) => { actions[i + 1] = () => byId("tab-" + view).hidden || this.selectView(view); });
		if (!Object.hasOwn(actions, event.key)) return;
		actions[event.key]();
		event.preventDefault();
	}
}

/* The calls from the innermost one, a line for each. It may be pasted into a terminal, and names come
   from the process: they keep no character that could end a line or reorder it. */
function stackText(model, tree, node) {
	const path = tree.path(node);
	const calls = tree.reversed ? path : path.reverse();
	return calls.map((call) => {
		const f = tree.func[call];
		const module = model.moduleName(f);
		return (model.names[f] + (module ? ` (${module})` : "")).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?") + "\n";
	}).join("");
}

/* The index of the greatest value; -1 if all are 0. */
function greatest(values) {
	let found = -1;
	values.forEach((value, i) => { if (value > (found < 0 ? 0 : values[found])) found = i; });
	return found;
}

decode(byId("data").textContent).then((data) => {
	window.stacksnap = new Page(data); /* for tests and debugging */
}).catch((error) => {
	byId("summary").textContent = "This page cannot be shown: " + error.message;
	throw error;
});
