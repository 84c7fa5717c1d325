// Makes elements from text alone, and shows numbers, times and sizes.

// Make an element, such as `h("p.faint", {onclick}, "text")`. Strings become text, never markup.
export function h(kind, ...given) {
	const [tag, ...classes] = kind.split(".");
	const made = document.createElement(tag);
	if (classes.length) made.className = classes.join(" ");
	if (given[0]?.constructor === Object) {
		for (const [name, value] of Object.entries(given.shift())) {
			if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
			else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
		}
	}
	made.append(...some(given));
	return made;
}

export const element = id => document.getElementById(id);
// Show a copy of a template, and return its elements by their `data-is`.
export function frame(main, id) {
	element("dialog").close();
	main.replaceChildren(element(id).content.cloneNode(true));
	return Object.fromEntries([...main.querySelectorAll("[data-is]")].map(each => [each.dataset.is, each]));
}

const some = children => children.flat(Infinity).filter(Boolean);
export const show = (element, ...children) => element.replaceChildren(...some(children));

// Text that a user or a document wrote: its direction must not reach beyond it.
export const said = (text, kind = "bdi", props = {}) => h(kind, {dir: "auto", ...props}, text);
export const button = (label, onclick, kind = "", props = {}) => h(`button${kind}`, {type: "button", onclick, ...props}, label);

export const put = (element, text) => element.textContent === text || (element.textContent = text);

// Make `parent` hold an element for each item, the same as before if it stays.
export function keyed(parent, items, keyOf, make) {
	const held = new Map([...parent.children].map(each => [each.key, each]));
	let before = parent.firstElementChild;
	for (const item of items) {
		const key = keyOf(item);
		const element = held.get(key) || Object.assign(make(item), {key});
		held.delete(key);
		element.update(item);
		if (element === before) before = before.nextElementSibling;
		else parent.insertBefore(element, before);
	}
	for (const gone of held.values()) gone.remove();
}

const encoded = start => (raw, ...values) => start + String.raw({raw}, ...values.map(encodeURIComponent));
// The address of a view, as in to`b/${slug}`, and the path of a call.
export const to = encoded("#/"), at = encoded("/v1/");

export function search(query = {}) {
	const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value || value === 0)).toString();
	return text && `?${text}`;
}

// Ask the user. Resolves to whether the answer is yes.
export const ask = (title, body, confirm) => new Promise(resolve => {
	const dialog = element("dialog"), [heading, place, form] = dialog.children;
	show(heading, title);
	show(place, body);
	show(form.lastElementChild, confirm);
	dialog.returnValue = "";
	dialog.onclose = () => resolve(dialog.returnValue === "yes");
	dialog.showModal();
});

// Return a function that calls `work` soon, and at most once in `ms`.
export function soon(work, ms) {
	let timer = null, last = -Infinity;
	return () => {
		timer ??= setTimeout(() => {
			timer = null;
			last = performance.now();
			work();
		}, Math.max(60, last + ms - performance.now()));
	};
}

export const wait = ms => new Promise(resolve => setTimeout(resolve, ms));

const short = new Intl.NumberFormat(undefined, {maximumSignificantDigits: 3});
const clock = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit"});
const day = new Intl.DateTimeFormat(undefined, {dateStyle: "medium"});

export const number = value => value.toLocaleString(undefined, {maximumFractionDigits: 0});
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
export const words = code => code.replaceAll("_", " ");
const joined = by => (...parts) => parts.filter(Boolean).join(by);
export const listed = joined(", "), dotted = joined(" · ");

export function bytes(value) {
	const units = ["", "kB", "MB", "GB", "TB"], unit = units.findIndex((_, at) => value < 999.5 * 1000 ** at || at === 4);
	return unit ? `${short.format(value / 1000 ** unit)} ${units[unit]}` : count(value, "byte");
}

// No "3 minutes ago", which would soon be wrong.
export function time(text) {
	const moment = new Date(text), isToday = moment.toDateString() === new Date().toDateString();
	return h("time", {datetime: text, title: moment.toLocaleString()}, isToday ? clock.format(moment) : day.format(moment));
}

// Where in a document something is, such as "page 3", and the headings above it.
export function place({page, line_start: first, line_end: last, headings}) {
	const lines = first && (last > first ? `lines ${number(first)}–${number(last)}` : `line ${number(first)}`);
	return dotted(listed(page && `page ${number(page)}`, lines), headings.join(" › "));
}

// The service counts characters, and JavaScript halves of some of them.
export function cutter(text) {
	const all = /[\ud800-\udbff]/.test(text) ? Array.from(text) : text;
	return {length: all.length, cut: (from, to) => (all === text ? text.slice(from, to) : all.slice(from, to).join(""))};
}

export function marked(text, marks) {
	const {cut, length} = cutter(text), made = [];
	let from = 0;
	for (const [start, end] of [...marks].sort((a, b) => a[0] - b[0])) {
		if (end <= from || start >= length) continue;
		made.push(cut(from, Math.max(from, start)), h("mark", cut(Math.max(from, start), end)));
		from = end;
	}
	return [...made, cut(from)];
}

const WAITING = {queued: "waiting", indexing: "being read", active: "almost ready", pending: "not sent", reading: "waiting", sending: "being sent"};
// What a source's state is called, and whether that is `ok`, `bad` or `wait`.
export const stateOf = source => source.status === "failed" ? ["failed", "bad"] : source.ready ? ["ready", "ok"]
	: [source.ready_withheld_by ? "being rebuilt" : WAITING[source.status] || source.status, "wait"];
export const badge = ([label, kind]) => h(`span.state.${kind}`, label);

export const trouble = error => h("p.trouble", {role: "alert"}, said(error.message), error.hint && ` ${error.hint}`);

export const sent = work => event => {
	event.preventDefault();
	work();
};

// The view of what was deleted elsewhere must not go on to show it.
export const leaveGone = error => error.status === 404 && dispatchEvent(new Event("hashchange"));

export const attempt = (outcome, work) => Promise.resolve().then(work).catch(error => {
	if (error.name !== "AbortError") show(outcome, trouble(error));
});
