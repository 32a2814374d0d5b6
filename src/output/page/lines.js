/*
 * Files and lines. A node of the call tree is a function; it consists of calls, which are the
 * lines of that function. Without lines the data has no calls, and each node is its only one.
 */

class Lines {
	constructor(data, tree) {
		const { parent, node, frame } = data.calls;
		this.known = Boolean(parent);
		this.count = this.known ? parent.length : tree.count;
		this.nodeOf = this.known ? sums(node) : Int32Array.from({ length: tree.count }, (_, i) => i);
		if (!this.known) return;
		this.parent = Int32Array.from(parent, (distance, i) => i - distance);
		this.frame = Int32Array.from(frame);
		this.line = data.frames.line;
		let file = null;
		this.file = data.frames.file.map((name) => { file = name === "" ? file : name; return file; });
	}
}

/* The sums of a sequence up to each element. */
function sums(steps) {
	const result = new Int32Array(steps.length);
	for (let i = 0, sum = 0; i < steps.length; i++) result[i] = sum += steps[i];
	return result;
}
