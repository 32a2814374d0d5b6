/*
 * The view as the part of the address behind "#", so that a link keeps it. What a link says is
 * checked, and ignored if this page has no such thing: names rather than numbers identify
 * threads and functions, so a link holds for another page on the same recording.
 */

const LINK_TEXT = 2000; /* limit of characters */

function functionKey(model, f) {
	const module = model.moduleName(f);
	return module ? `${model.names[f]} @${module}` : model.names[f];
}

function waitKey(model, row) {
	const { kind, f } = model.waits.rows[row];
	return f < 0 ? kind : `${kind} in ${functionKey(model, f)}`;
}

function threadKey(model, t) {
	const { process, tid } = model.threads[t];
	const { recording, pid } = model.processes[process];
	return `${recording ? recording + ":" : ""}${pid}/${tid}`;
}

/* A hash of the functions on the way to a node finds the node again. Returns the function that
   makes the hash of a node out of that of its caller. */
function pathHasher(model) {
	const hashes = new Map();
	const hashOf = (f) => {
		if (!hashes.has(f)) {
			let hash = 0x811c9dc5;
			for (const letter of model.names[f]) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193);
			hashes.set(f, hash);
		}
		return hashes.get(f);
	};
	return (caller, f) => (Math.imul(caller ^ hashOf(f), 0x9e3779b1) ^ (caller >>> 13)) >>> 0;
}

function pathKey(model, tree, node) {
	const step = pathHasher(model);
	const hash = tree.path(node).reduce((key, at) => step(key, tree.func[at]), 0);
	return `${tree.depth[node]}.${hash.toString(36)}`;
}

function nodeOfKey(model, tree, key) {
	const [depth, hash] = key.split(".").map((part, i) => parseInt(part, i ? 36 : 10));
	const step = pathHasher(model);
	const keys = new Uint32Array(tree.count);
	for (let node = 1; node < tree.count; node++) {
		keys[node] = step(keys[tree.parent[node]], tree.func[node]);
		if (keys[node] === hash && tree.depth[node] === depth) return node;
	}
	return 0;
}

const SHOWN = ["cpu", "busy", "all"]; /* by the last class of samples */

class Link {
	constructor(page) {
		this.page = page;
		this.timer = 0;
		/* not by replaceState() below */
		window.addEventListener("hashchange", () => page.restore(this.read()));
	}

	/* Browsers limit how often the address changes. */
	changed() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.write(), 150);
	}

	write() {
		clearTimeout(this.timer);
		const text = this.text();
		if (location.hash.slice(1) !== text) history.replaceState(null, "", "#" + text);
	}

	text() {
		const { page } = this;
		const { model, flame } = page;
		const link = new URLSearchParams();
		link.set("view", page.view);
		link.set("show", SHOWN[model.shows]);
		if (model.chosen) link.set("threads", [...model.chosen].map((t) => threadKey(model, t)).join());
		if (model.window) link.set("time", model.window.map((time) => (time / 1e6).toFixed(6)).join("-"));
		if (byId("search").value) link.set("search", byId("search").value);
		if (!model.onlyMatches) link.set("matches", "highlight");
		if (model.inverted) link.set("invert", "1");
		if (!flame.byWeight) link.set("order", "name");
		if (flame.rootAtBottom) link.set("root", "bottom");
		if (model.compares) link.set("compare", "1");
		if (model.wait >= 0) link.set("wait", waitKey(model, model.wait));
		for (const { kind, f } of model.changes) link.append(kind, f < 0 ? "1" : functionKey(model, f));
		if (page.selected >= 0) link.set("function", functionKey(model, page.selected));
		if (flame.zoom) link.set("zoom", pathKey(model, flame.tree, flame.zoom));
		return link.toString();
	}

	/* What the address says, as far as it makes sense here. null: nothing. */
	read() {
		const link = new URLSearchParams(location.hash.slice(1));
		if (![...link].length) return null;
		const { model } = this.page;
		const functions = new Map(model.names.map((_, f) => [functionKey(model, f), f]).reverse());
		const one = (key) => (link.get(key) || "").slice(0, LINK_TEXT);
		const f = (name) => functions.get(name) ?? -1;
		const [from, to] = one("time").split("-").map((time) => Number(time) * 1e6);
		const threads = new Map(model.threads.map((_, t) => [threadKey(model, t), t]).reverse());
		const chosen = (link.get("threads") || "").split(",").map((key) => threads.get(key)).filter((t) => t !== undefined);
		return {
			view: one("view"),
			shows: SHOWN.indexOf(one("show")),
			chosen: chosen.length ? new Set(chosen) : null,
			window: from >= 0 && to > from && to <= model.end + 1 ? [from, Math.min(to, model.end)] : null,
			wait: link.has("wait") ? model.waits.rows.findIndex((_, row) => waitKey(model, row) === link.get("wait")) : -1,
			search: one("search"),
			onlyMatches: one("matches") !== "highlight",
			inverted: one("invert") === "1",
			compares: one("compare") === "1" && model.data.recordings.length === 2,
			byWeight: one("order") !== "name",
			rootAtBottom: one("root") === "bottom",
			changes: [...link].filter(([kind]) => Object.hasOwn(CHANGES, kind)).slice(0, 50)
				.map(([kind, name]) => ({ kind, f: TOGGLES.includes(kind) ? -1 : f(name) }))
				.filter((change) => TOGGLES.includes(change.kind) || change.f >= 0),
			selected: f(link.get("function")),
			zoom: one("zoom"),
		};
	}
}
