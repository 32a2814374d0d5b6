/* What is shown, as a file: all of a flame graph or stack chart, or the wait-for graph. Each is an SVG
   first, with its colours in attributes; a PNG is drawn from that. */

const PIXELS_MOST = 16000; /* limit of the height and width of a PNG */
const INLINED = ["fill", "stroke", "stroke-width", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

/* Takes what is drawn on a canvas. */
class SvgContext {
	constructor(width, height) {
		this.picture = svg("svg", { width, height });
		this.canvas = document.createElement("canvas").getContext("2d");
		this.globalAlpha = 1;
	}

	measureText(text) {
		this.canvas.font = this.font;
		return this.canvas.measureText(text);
	}

	fillRect(x, y, width, height) {
		this.picture.append(svg("rect", { x, y, width, height, fill: this.fillStyle, opacity: this.globalAlpha }));
	}

	fillText(text, x, y) {
		const [, size, family] = /^(\S+) (.*)$/.exec(this.font);
		const below = parseFloat(size) * (this.textBaseline === "top" ? 0.8 : 0.35);
		const anchor = this.textAlign === "right" ? "end" : "start";
		this.picture.append(svg("text", { x, y: y + below, fill: this.fillStyle, "font-size": size, "font-family": family, "text-anchor": anchor }, text));
	}

	strokeRect() {} /* of the pointer or the keyboard */
}

/* A copy that needs no style sheet. */
function pictureOf(element) {
	const copy = element.cloneNode(true);
	const from = [...element.querySelectorAll("*")];
	[...copy.querySelectorAll("*")].forEach((part, i) => {
		const style = getComputedStyle(from[i]);
		for (const name of INLINED) part.setAttribute(name, style.getPropertyValue(name));
	});
	copy.prepend(svg("rect", { width: "100%", height: "100%", fill: palette().panel }));
	return copy;
}

function drawPicture(picture) {
	const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
	const scale = Math.min(window.devicePixelRatio || 1, PIXELS_MOST / Math.max(width, height));
	const canvas = document.createElement("canvas");
	canvas.width = Math.ceil(width * scale);
	canvas.height = Math.ceil(height * scale);
	const context = canvas.getContext("2d");
	context.scale(scale, scale);
	for (const part of picture.querySelectorAll("rect, path, polygon, text")) {
		const value = (name, other) => part.getAttribute(name) ?? other;
		const number = (name, whole) => (value(name, "0").endsWith("%") ? whole : Number(value(name, 0)));
		context.globalAlpha = Number(value("opacity", 1));
		context.lineWidth = parseFloat(value("stroke-width", 1));
		const styles = { fill: value("fill", "none"), stroke: value("stroke", "none") };
		Object.assign(context, { fillStyle: styles.fill, strokeStyle: styles.stroke });
		if (part.tagName === "text") {
			context.font = `${value("font-weight", 400)} ${value("font-size")} ${value("font-family")}`;
			context.textAlign = { middle: "center", end: "right" }[value("text-anchor")] || "left";
			const at = [part.textContent, number("x"), number("y")];
			if (styles.stroke !== "none") context.strokeText(...at);
			context.fillText(...at);
			continue;
		}
		const outline = new Path2D(part.tagName === "rect" ? "" : value("d") ?? `M${value("points")}Z`);
		if (part.tagName === "rect") outline.roundRect(number("x"), number("y"), number("width", width), number("height", height), number("rx"));
		if (styles.fill !== "none") context.fill(outline);
		if (styles.stroke !== "none") context.stroke(outline);
	}
	return new Promise((done) => canvas.toBlob(done));
}

/* type: svg or png */
async function savePicture(picture, name, type) {
	/* a file of XML has no control characters */
	const text = () => new XMLSerializer().serializeToString(picture).replace(/[\p{Cc}\p{Cn}]/gu, "?");
	const file = type === "svg" ? new Blob([text()], { type: "image/svg+xml" }) : await drawPicture(picture);
	const link = document.createElement("a");
	link.href = URL.createObjectURL(file);
	link.download = `${name.replace(/[^\w.-]+/g, "-")}.${type}`;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
