/* The tooltip, and the line below the graph that says the same about the selected frame. */

const TIP_HEADING = 700; /* limit of characters: names of templates can be longer */

/* lines: [heading, text...], or null to hide it. Inserted as text, never as markup. A finger
   has no position to hover at: what it touches is described in the line below. */
function showTip(lines, event) {
	const tip = byId("tip");
	tip.hidden = !lines || event.pointerType === "touch";
	if (tip.hidden) return;
	tip.replaceChildren(...lines.filter(Boolean).map((text, i) => {
		const line = document.createElement(i ? "span" : "b");
		line.textContent = text.length > TIP_HEADING ? text.slice(0, TIP_HEADING) + "…" : text;
		return line;
	}));
	const bounds = tip.getBoundingClientRect();
	const x = Math.min(event.clientX + 14, window.innerWidth - bounds.width - 6);
	const below = event.clientY + 18 + bounds.height < window.innerHeight;
	tip.style.left = Math.max(x, 4) + "px";
	tip.style.top = (below ? event.clientY + 18 : Math.max(event.clientY - bounds.height - 12, 4)) + "px";
}

/* Whatever may move things away from below the pointer, or the pointer away, hides the tip. */
function hideTipsWithPointer() {
	const hide = () => showTip(null);
	for (const name of ["scroll", "wheel", "pointerdown", "pointercancel", "keydown", "touchstart"])
		document.addEventListener(name, hide, { capture: true, passive: true });
	for (const name of ["blur", "resize", "pagehide", "hashchange"]) window.addEventListener(name, hide);
	document.addEventListener("visibilitychange", hide);
	document.documentElement.addEventListener("pointerleave", hide);
}

function setDetail(lines) {
	byId("detail").textContent = lines ? lines.filter(Boolean).join(" · ") : "\u00a0";
}
