// The rows of a long list: read page by page, and made only while they are in sight.

import {h, keyed} from "./dom.js";

// Rows of a page, and pages that are held; others are read again in sight.
const PAGE = 200, HELD = 12;

// `read(after, limit)` returns `{rows, has_more, last_id}`; `make(row)` makes a `tr`, and all are as high as `height()`.
export function longTable({table, body, height, read, make, signal, onDraw}) {
	const space = () => h("tbody", {"aria-hidden": "true"}, h("tr", h("td")));
	const above = space(), below = space();
	body.before(above);
	body.after(below);
	// Each page begins after a cursor. Its rows are old if something has changed.
	let pages = [], isAll = false, round = 0, busy = -1, frame;

	function draw() {
		const each = height(), hidden = -table.getBoundingClientRect().top - table.tHead.offsetHeight;
		const first = Math.max(0, Math.floor(hidden / each) - 12), last = first + Math.ceil(innerHeight / each) + 24;
		const seen = [];
		let start = 0, from = 0, wanted = -1;
		pages.forEach(({rows, size, isOld}, index) => {
			if (start <= last && (start + size > first || index === pages.length - 1)) {
				if ((!rows || isOld) && wanted < 0) wanted = index;
				if (!seen.length) from = Math.max(first, start);
				seen.push(...(rows || []).slice(Math.max(0, first - start), Math.max(0, last - start)));
			}
			start += size;
		});
		keyed(body, seen, row => row.id, make);
		seen.forEach((_, at) => (body.children[at].ariaRowIndex = from + at + 2));
		above.firstChild.firstChild.style.height = `${Math.min(from, start) * each}px`;
		below.firstChild.firstChild.style.height = `${Math.max(0, start - from - seen.length) * each}px`;
		table.ariaRowCount = isAll ? start + 1 : -1;
		onDraw(start, isAll);
		return wanted;
	}

	async function look() {
		const mine = round;
		let index = draw();
		if (busy === mine) return;
		busy = mine;
		for (; index >= 0; index = draw()) {
			const {rows, has_more: more, last_id: after} = await read(pages[index].after, PAGE).catch(error => {
				busy = -1;
				throw error;
			});
			if (mine !== round || signal.aborted) return;
			Object.assign(pages[index], {rows, size: rows.length, isOld: false});
			isAll = !more || (isAll && index < pages.length - 1);
			if (!more) pages.length = index + 1;
			else if (index === pages.length - 1) pages.push({after, size: 0});
			else if (pages[index + 1].after !== after) Object.assign(pages[index + 1], {after, isOld: true});
			const far = page => Math.abs(pages.indexOf(page) - index);
			for (const page of pages.filter(page => page.rows).sort((a, b) => far(a) - far(b)).slice(HELD)) page.rows = null;
		}
		busy = -1;
	}

	const redraw = () => {
		cancelAnimationFrame(frame);
		frame = requestAnimationFrame(() => look().catch(() => {}));
	};
	addEventListener("scroll", redraw, {passive: true, signal});
	addEventListener("resize", redraw, {signal});
	return {
		redraw,
		held: () => pages.flatMap(page => page.rows || []),
		// Read the list from its beginning or, if it has only changed, again what is in sight.
		restart(isSame) {
			round++;
			if (isSame) for (const page of pages) page.isOld = true;
			else [pages, isAll] = [[{after: "", size: 0}], false];
			return look();
		},
	};
}
