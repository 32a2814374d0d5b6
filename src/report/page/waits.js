/*
 * What the threads of a recording waited for, as a table: a row for each kind of wait and each
 * function that waits. It counts the samples of the selection, whether or not they are shown as
 * stacks; idle ones only with "All".
 */

const OBJECTS_SHOWN = 3; /* of one row */
const NAMES_SHOWN = 3;

/* A lock of an application: [function, description]. */
const lockText = ([name, words]) => (words ? `${name} (${words})` : name);

/* The row of each run, -1: it does not wait, or its call is not known. */
class Waits {
	constructor(model) {
		const { runs, system_calls: calls, waits_for: details, locks } = model.data; /* indices + 1 */
		this.model = model;
		this.rows = []; /* { kind, f }; f: the function that waits, -1: not known */
		this.rowOf = new Int32Array(runs.thread.length).fill(-1);
		this.objectOf = new Int32Array(runs.thread.length).fill(-1);
		this.objects = []; /* texts */
		this.numbers = new Map();
		for (let i = 0; i < this.rowOf.length; i++) {
			if (model.runState[i] === RUNNING || !(runs.wait[i] || runs.detail[i] || runs.lock[i])) continue;
			const f = runs.function[i] - 1;
			const call = runs.wait[i] ? calls[runs.wait[i] - 1] : "";
			const [kind, object] = runs.lock[i] ? ["application lock", lockText(locks[runs.lock[i] - 1])] :
				runs.detail[i] ? details[runs.detail[i] - 1] :
				["system call", runs.descriptor[i] ? `${call} fd ${runs.descriptor[i] - 1}` : call];
			this.rowOf[i] = this.number(`row ${f} ${kind}`, this.rows, () => ({ kind, f }));
			this.objectOf[i] = this.number(`object ${object}`, this.objects, () => object);
		}
	}

	number(key, list, make) {
		if (!this.numbers.has(key)) this.numbers.set(key, list.push(make()) - 1);
		return this.numbers.get(key);
	}

	get isEmpty() {
		return this.model.isSnapshot || !this.rows.length;
	}

	/* The name of a row; those of two modules may have the same. */
	label(row) {
		const { kind, f } = this.rows[row];
		return f < 0 ? kind : `${kind} in ${this.model.names[f]}`;
	}

	/* The samples of the selection: by row { n, time, objects, threads } */
	count() {
		const { model } = this;
		const found = this.rows.map(() => ({ n: 0, time: 0, objects: new Map(), threads: new Map() }));
		const add = (map, key, n) => map.set(key, (map.get(key) || 0) + n);
		this.hidden = 0;
		this.all = 0; /* also those that do not wait */
		model.eachSample((i, n) => {
			this.all += n;
			const row = this.rowOf[i];
			if (row < 0 || !model.isCounted(this.model.runStack[i])) return;
			if (model.runClass[i] === IDLE && model.shows < IDLE) {
				this.hidden += n;
				return;
			}
			found[row].n += n;
			found[row].time += n * model.tickLength(model.runThread[i]);
			add(found[row].objects, this.objectOf[i], n);
			add(found[row].threads, model.runThread[i], n);
		});
		return found;
	}
}

class WaitTable {
	/* onRow(row): its stacks are wanted; onFunction(f) */
	constructor(model, onRow, onFunction) {
		Object.assign(this, { model, waits: model.waits, onRow, onFunction });
		this.body = byId("waits").tBodies[0];
		byId("waits-part").hidden = this.waits.isEmpty;
	}

	update() {
		const { waits } = this;
		const found = waits.count();
		const order = found.map((_, row) => row).filter((row) => found[row].n).sort((a, b) => found[b].n - found[a].n || a - b);
		this.body.replaceChildren(...order.slice(0, ROWS_SHOWN).map((row) => this.row(row, found[row])));
		const more = [];
		if (order.length > ROWS_SHOWN) more.push(`and ${count(order.length - ROWS_SHOWN)} more`);
		if (!order.length) more.push("no waits");
		if (waits.hidden) more.push(`hidden: ${count(waits.hidden)} idle (${share(waits.hidden, waits.all)})`);
		byId("waits-more").textContent = more.join("; ");
	}

	row(row, { n, time, objects, threads }) {
		const { model, waits } = this;
		const { kind, f } = waits.rows[row];
		const line = document.createElement("tr");
		line.setAttribute("aria-selected", String(row === model.wait));
		for (const text of [share(n, waits.all), (time / 1e6).toFixed(2)]) {
			const cell = line.insertCell();
			cell.className = "number";
			cell.textContent = text;
			cell.title = amount(n);
		}
		this.button(line, kind, "Only the stacks with this wait", () => this.onRow(row));
		this.text(line, most(objects, OBJECTS_SHOWN, n, (object) => waits.objects[object]));
		if (f < 0) line.insertCell();
		else this.button(line, model.names[f], "Show callers and callees", () => this.onFunction(row, f));
		const names = new Map();
		for (const [thread, samples] of threads) {
			const { name } = model.threads[thread];
			const known = names.get(name) || { samples: 0, threads: [] };
			known.samples += samples;
			known.threads.push(thread);
			names.set(name, known);
		}
		const pools = [...names].sort((a, b) => b[1].samples - a[1].samples);
		const left = pools.length - NAMES_SHOWN;
		this.text(line, pools.slice(0, NAMES_SHOWN).map(([name, { threads: [first, ...others] }]) =>
			(others.length ? `${name} (${count(others.length + 1)} threads)` : threadLabel(model, first))).join(", ") +
			(left > 0 ? ` and ${count(left)} more` : ""));
		return line;
	}

	text(line, text) {
		const cell = line.insertCell();
		cell.className = "object";
		cell.textContent = text;
	}

	button(line, text, title, action) {
		const cell = line.insertCell();
		const button = document.createElement("button");
		cell.className = "name";
		Object.assign(button, { type: "button", textContent: text, title });
		button.addEventListener("click", action);
		cell.append(button);
	}
}
