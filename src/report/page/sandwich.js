/* Callers and callees of one function: two flame graphs that share it. */

class Sandwich {
	constructor(model, onFunction) {
		this.model = model;
		this.f = -1; /* a function or a group */
		const pick = (flame) => (node) => node && onFunction(flame().tree.func[node]);
		this.callers = new Flame("callers", model, pick(() => this.callers), () => {});
		this.callees = new Flame("callees", model, pick(() => this.callees), () => {});
		this.callers.rootAtBottom = true;
	}

	update(f, self, total, all) {
		this.f = f;
		byId("sandwich").hidden = f < 0;
		if (f < 0) return;
		byId("sandwich-name").textContent = this.model.names[f];
		byId("sandwich-facts").textContent = [this.model.moduleName(f),
			`total ${share(total[f], all)}, ${amount(total[f])}`, `self ${share(self[f], all)}`].filter(Boolean).join(" · ");
		this.callers.setTree(this.model.callers(f));
		this.callees.setTree(this.model.callees(f));
		this.callers.box.scrollTop = this.callers.all;
	}

	layout() {
		this.callers.layout();
		this.callees.layout();
	}
}
