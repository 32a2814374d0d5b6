/* The tables of functions and of modules. */

const ROWS_SHOWN = 500;

class FunctionTable {
	constructor(model, onName) {
		this.model = model;
		this.onName = onName;
		this.table = document.getElementById("functions");
		this.more = document.getElementById("functions-more");
		this.key = "self";
		this.down = true;
		this.selected = -1;
		this.table.querySelectorAll("th button").forEach((button) => {
			button.addEventListener("click", () => this.sortBy(button.dataset.key));
		});
	}

	sortBy(key) {
		this.down = key === this.key ? !this.down : key === "self" || key === "total";
		this.key = key;
		this.table.querySelectorAll("th").forEach((head) => {
			const mine = head.firstElementChild.dataset.key === key;
			head.setAttribute("aria-sort", mine ? (this.down ? "descending" : "ascending") : "none");
		});
		this.draw();
	}

	update(self, total, all) {
		Object.assign(this, { self, total, all });
		this.draw();
	}

	compare() {
		const { self, total, model } = this;
		const byNumber = (a, b) => (a > b ? -1 : a < b ? 1 : 0);
		const byText = (a, b) => (a < b ? 1 : a > b ? -1 : 0);
		const first = {
			self: (a, b) => byNumber(self[a], self[b]) || byNumber(total[a], total[b]),
			total: (a, b) => byNumber(total[a], total[b]) || byNumber(self[a], self[b]),
			name: (a, b) => byText(model.names[a], model.names[b]),
			module: (a, b) => byText(model.moduleName(a), model.moduleName(b)),
		}[this.key];
		const sign = this.down ? 1 : -1;
		return (a, b) => sign * first(a, b) || model.rank[a] - model.rank[b];
	}

	draw() {
		if (!this.self) return;
		const { matches } = this.model;
		const shown = [];
		for (let f = 0; f < this.total.length; f++)
			if (this.total[f] > 0 && this.model.isListed(f, !!matches) && (!matches || matches[f])) shown.push(f);
		shown.sort(this.compare());
		const body = this.table.tBodies[0];
		body.replaceChildren(...shown.slice(0, ROWS_SHOWN).map((f) => this.row(f)));
		const left = shown.length - ROWS_SHOWN;
		this.more.textContent = left > 0 ? `and ${count(left)} more: search to find them` : shown.length ? "" : "no samples";
	}

	row(f) {
		const row = document.createElement("tr");
		row.setAttribute("aria-selected", String(f === this.selected));
		for (const samples of [this.self[f], this.total[f]]) {
			const cell = row.insertCell();
			cell.className = "number";
			cell.textContent = `${share(samples, this.all)} `;
			cell.title = amount(samples);
		}
		const cell = row.insertCell();
		const button = document.createElement("button");
		cell.className = "name";
		button.type = "button";
		button.textContent = this.model.names[f];
		button.title = "Show callers and callees";
		button.addEventListener("click", () => this.onName(f));
		cell.append(button);
		row.insertCell().textContent = this.model.moduleName(f);
		return row;
	}
}

class ModuleTable {
	constructor(model) {
		this.model = model;
		this.table = document.getElementById("modules");
		this.more = document.getElementById("modules-more");
		this.lives = new Map();
		for (const life of model.data.lifetimes) {
			if (!this.lives.has(life.module)) this.lives.set(life.module, []);
			this.lives.get(life.module).push(life);
		}
	}

	update(self, all) {
		const model = this.model;
		const samples = new Float64Array(model.modules.length);
		for (let f = 0; f < model.functions; f++)
			if (model.moduleOf[f] >= 0) samples[model.moduleOf[f]] += self[f];
		const order = model.modules.map((_, m) => m).sort((a, b) => samples[b] - samples[a] || a - b);
		this.table.tBodies[0].replaceChildren(...order.slice(0, ROWS_SHOWN).map((m) => this.row(m, samples[m], all)));
		const left = order.length - ROWS_SHOWN;
		this.more.textContent = left > 0 ? `and ${count(left)} more` : "";
	}

	row(m, samples, all) {
		const module = this.model.modules[m];
		const lives = (this.lives.get(m) || []).slice(0, 50);
		const row = document.createElement("tr");
		const name = row.insertCell();
		const path = document.createElement("span");
		const id = document.createElement("small");
		path.textContent = module.path;
		id.textContent = module.build_id ? "build-id " + module.build_id : "no build-id";
		if (module.by_file)
			id.textContent += ` · names rely on the size, headers and symbols of the file (${module.file_hash})`;
		name.className = "name";
		name.append(path, document.createElement("br"), id);
		if (module.problem) {
			const missing = document.createElement("small");
			missing.className = "missing";
			missing.textContent = " · " + module.problem;
			name.append(missing);
		}
		const number = row.insertCell();
		number.className = "number";
		number.textContent = share(samples, all);
		number.title = amount(samples);
		const times = row.insertCell();
		times.className = "mono";
		times.textContent = lives.map((life) => lifeText(this.model, life)).join("\n");
		times.style.whiteSpace = "pre";
		const address = row.insertCell();
		address.className = "mono";
		address.textContent = lives.map((life) => life.base).join("\n");
		address.style.whiteSpace = "pre";
		const bars = row.insertCell();
		lives.forEach((life) => bars.append(this.bar(life)));
		return row;
	}

	bar(life) {
		const end = this.model.end;
		const bar = document.createElement("div");
		const part = document.createElement("i");
		const from = Math.min(Math.max(life.from, 0), end);
		const to = life.to === null ? end : Math.min(Math.max(life.to, from), end);
		bar.className = "life";
		bar.setAttribute("role", "img");
		bar.setAttribute("aria-label", lifeText(this.model, life));
		part.style.left = (from / end) * 100 + "%";
		part.style.width = ((to - from) / end) * 100 + "%";
		bar.append(part);
		return bar;
	}
}

function lifeText(model, life) {
	const seconds = (time) => (time / 1e6).toFixed(3);
	/* a module that is present at the first tick was loaded before it */
	const first = model.ticks[model.processes[life.process].recording][0] || 0;
	const before = life.from <= first;
	const whole = before && life.to === null;
	const span = whole ? "always" : `${before ? "before" : seconds(life.from)} – ${life.to === null ? "end" : seconds(life.to)}`;
	return model.processes.length > 1 ? `${span} (${processLabel(model, life.process)})` : span;
}
