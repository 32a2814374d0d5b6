/* The page: the selection, the views and the keys. */

const byId = (id) => document.getElementById(id);
const count = (n) => Math.round(n).toLocaleString("en-US");
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
		states: [..."RDST"].map((s) => value("state-" + s)).concat(value("state-other")),
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

class Page {
	constructor(data) {
		this.model = new Model(data);
		this.timeline = new Timeline(this.model, (w) => this.selectWindow(w), (t) => this.selectThread(t));
		this.flame = new Flame(this.model, () => this.zoomed());
		this.functions = new FunctionTable(this.model, (f) => this.find(f));
		this.modules = new ModuleTable(this.model);
		this.graph = new Graph(this.model, (t) => { this.selectThread(t); this.selectView("flame"); });
		this.view = "flame";
		this.exact = -1; /* a function selected in the table; -1: match the typed text */
		this.head();
		this.fillThreads();
		this.legend();
		this.listen();
		this.resize();
		this.refresh();
		if (this.graph.isEmpty) return;
		byId("tab-waits").hidden = false;
		this.graph.draw();
		this.selectView("waits"); /* waits are the first question about a snapshot */
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
			`${count(samples)} samples`,
		];
		byId("time-window").hidden = this.model.isSnapshot;
		byId("summary").textContent = parts.join(" · ");
		byId("notes").hidden = !notes.length;
		byId("notes").replaceChildren(...notes.map((note) => {
			const item = document.createElement("li");
			item.textContent = note;
			return item;
		}));
	}

	fillThreads() {
		const all = new Option("all", "-1");
		byId("thread").replaceChildren(all, ...this.timeline.order.map((t) => new Option(threadLabel(this.model, t), String(t))));
	}

	legend() {
		const words = ["running", "uninterruptible", "sleeping", "stopped", "other"];
		byId("legend").replaceChildren(...words.map((word, i) => {
			const item = document.createElement("span");
			const color = document.createElement("i");
			color.style.background = `var(--state-${["R", "D", "S", "T", "other"][i]})`;
			item.append(color, word);
			return item;
		}));
	}

	listen() {
		byId("thread").addEventListener("change", (event) => this.selectThread(Number(event.target.value)));
		byId("on-cpu").addEventListener("click", () => this.toggle("on-cpu", this.model, "onCpu"));
		byId("reverse").addEventListener("click", () => this.toggle("reverse", this.model, "reversed"));
		byId("flip").addEventListener("click", () => this.flip());
		byId("unzoom").addEventListener("click", () => this.flame.zoomTo(0));
		byId("whole").addEventListener("click", () => this.selectWindow(null));
		byId("search").addEventListener("input", () => { this.exact = -1; this.search(); });
		for (const id of ["from", "to"]) byId(id).addEventListener("change", () => this.typedWindow());
		document.querySelectorAll("[role=tab]").forEach((tab) => {
			tab.addEventListener("click", () => this.selectView(tab.id.slice(4)));
			tab.addEventListener("keydown", (event) => this.tabKey(event));
		});
		byId("theme").addEventListener("click", () => this.nextTheme());
		byId("help-open").addEventListener("click", () => byId("help").showModal());
		byId("help-close").addEventListener("click", () => byId("help").close());
		window.addEventListener("resize", () => this.resize());
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
		document.addEventListener("keydown", (event) => this.key(event));
		hideTipsWithPointer();
		for (const name of ["focus", "blur"]) this.flame.box.addEventListener(name, () => this.flame.paint());
	}

	resize() {
		this.timeline.layout();
		this.flame.layout();
	}

	repaint() {
		knownPalette = null;
		this.timeline.paint();
		this.flame.paint();
	}

	/* Updates what depends on the selection, at most once per animation frame. */
	changed() {
		if (this.pending) return;
		this.pending = requestAnimationFrame(() => { this.pending = 0; this.refresh(); });
	}

	refresh() {
		const model = this.model;
		this.tree = model.recount();
		this.search();
		this.flame.setTree(this.tree);
		this.timeline.paint();
		this.zoomed();
		if (document.activeElement !== byId("from") && document.activeElement !== byId("to")) this.writeWindow();
	}

	writeWindow() {
		const window = this.model.window || [0, this.model.end];
		byId("from").value = (window[0] / 1e6).toFixed(3);
		byId("to").value = (window[1] / 1e6).toFixed(3);
	}

	updateTables() {
		const all = this.tree.total[0];
		const [self, total] = this.view === "flame" ? [] : this.model.byFunction(this.tree);
		if (this.view === "functions") this.functions.update(self, total, all, this.flame.matches);
		if (this.view === "modules") this.modules.update(self, all);
	}

	search() {
		const text = byId("search").value;
		const test = matcher(text);
		const { names } = this.model;
		let matches = null;
		if (this.exact >= 0) {
			matches = Uint8Array.from(names, (_, f) => (f === this.exact || this.model.groupOf[f] === this.exact ? 1 : 0));
		} else if (test) {
			matches = Uint8Array.from(names, (name, f) => (test(name) || test(this.model.moduleName(f)) ? 1 : 0));
		}
		this.flame.matches = matches;
		const samples = matches ? this.model.matchedSamples(this.tree, matches) : 0;
		byId("matched").textContent = matches ? share(samples, this.tree.total[0]) : "";
		byId("matched").title = matches ? `${count(samples)} of ${count(this.tree.total[0])} samples` : "";
		this.flame.paint();
		this.updateTables();
	}

	find(f) {
		byId("search").value = this.model.names[f];
		this.exact = f;
		this.selectView("flame");
		this.search();
	}

	zoomed() {
		byId("unzoom").disabled = this.flame.zoom === 0;
		this.flame.show(this.flame.zoom);
	}

	toggle(id, object, field) {
		object[field] = !object[field];
		byId(id).setAttribute("aria-pressed", String(object[field]));
		this.changed();
	}

	flip() {
		this.flame.rootAtBottom = !this.flame.rootAtBottom;
		byId("flip").setAttribute("aria-pressed", String(this.flame.rootAtBottom));
		this.flame.layout();
		this.flame.box.scrollTop = this.flame.rootAtBottom ? this.flame.all : 0;
		this.flame.paint();
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

	selectThread(thread) {
		this.model.thread = thread;
		byId("thread").value = String(thread);
		this.changed();
	}

	selectView(view) {
		this.view = view;
		document.querySelectorAll("[role=tab]").forEach((tab) => {
			const selected = tab.id === "tab-" + view;
			tab.setAttribute("aria-selected", String(selected));
			tab.tabIndex = selected ? 0 : -1;
			byId(tab.getAttribute("aria-controls")).hidden = !selected;
		});
		byId("detail").hidden = view !== "flame";
		this.updateTables();
		if (view === "flame") this.flame.layout();
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

	stepThread(step) {
		const order = [-1, ...this.timeline.order];
		const at = order.indexOf(this.model.thread) + step;
		if (at >= 0 && at < order.length) this.selectThread(order[at]);
	}

	escape() {
		const search = byId("search");
		if (search.value) {
			search.value = "";
			this.exact = -1;
			this.search();
		} else if (document.activeElement === search) search.blur();
		else if (this.flame.zoom) this.flame.zoomTo(0);
		else this.selectWindow(null);
	}

	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
		if (event.key === "Escape") return void this.escape();
		if (/^(INPUT|SELECT)$/.test(event.target.tagName)) return;
		const actions = {
			"/": () => byId("search").focus(),
			"?": () => byId("help").showModal(),
			1: () => this.selectView("flame"),
			2: () => this.selectView("functions"),
			3: () => this.selectView("modules"),
			4: () => this.graph.isEmpty || this.selectView("waits"),
			c: () => byId("on-cpu").click(),
			r: () => byId("reverse").click(),
			f: () => byId("flip").click(),
			t: () => this.nextTheme(),
			w: () => { this.selectThread(-1); this.selectWindow(null); },
			"[": () => this.stepThread(-1),
			"]": () => this.stepThread(1),
		};
		if (!Object.hasOwn(actions, event.key)) return;
		actions[event.key]();
		event.preventDefault();
	}
}

decode(byId("data").textContent).then((data) => {
	window.stacksnap = new Page(data); /* for tests and debugging */
}).catch((error) => {
	byId("summary").textContent = "This page cannot be shown: " + error.message;
	throw error;
});
