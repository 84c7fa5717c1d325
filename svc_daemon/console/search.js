// The view of a search within chosen buckets and tags; each hit leads to its place in the text.

import {at, attempt, button, count, frame, h, place, said, sent, show} from "./dom.js";
import {onEvent} from "./live.js";
import {can, getBuckets, post} from "./session.js";
import {hit} from "./source.js";

// Lines of an address: tags may have commas.
export const split = text => (text || "").split("\n").filter(Boolean);

function toggle(text, item) {
	const all = new Set(split(text));
	all.delete(item) || all.add(item);
	return [...all].join("\n");
}

// Chips of all buckets. `change` gets the chosen slugs.
export async function bucketChips(text, change, signal) {
	const buckets = can("knowledge:read") ? await getBuckets(signal) : [], chosen = split(text);
	return h("div.chips", {role: "group", "aria-label": "Buckets; all if none is chosen"}, [...new Set([...buckets.map(each => each.slug), ...chosen])].map(slug =>
		button(slug, () => change(toggle(text, slug)), ".chip", {"aria-pressed": String(chosen.includes(slug))})));
}

export async function showSearch({main, signal, query, set, title}) {
	title("Search");
	const {form, field, mode, chips, outcome} = frame(main, "search");
	mode.value = query.mode || "";
	mode.onchange = () => go({mode: mode.value});
	let waits = false;

	const run = () => attempt(outcome, async () => {
		if (!query.q) return show(outcome);
		const lists = {...(query.b && {buckets: split(query.b)}), ...(query.tags && {tags: split(query.tags)})};
		waits = true;
		const {data, has_more: more, warnings, suggestions} = await post(at`search`, {query: query.q, explain: true, max_num_results: 20, mode: query.mode || "hybrid", ...lists}, signal);
		waits = false;
		const other = ({word, instead}) => h("p", said(word), " is in no document. Did you mean ", button(instead, () => go({q: query.q.replace(word, instead)}), ".quiet"), "?");
		const tags = each => each.tags.map(tag => button(tag, () => go({tags: toggle(query.tags, tag)}), ".chip"));
		show(outcome, suggestions.map(other), warnings.map(each => said(each, "p.warn")),
			data.length ? h("p.faint", count(data.length, "passage"), more && ", and there are more") : h("p.empty", "Nothing was found."),
			h("ol.hits", data.map(each => hit(each, each.title, said(place(each.location) || each.filename, "p.faint"), tags(each)))));
	});

	const drawChips = async () => show(chips, await bucketChips(query.b, b => go({b}), signal), split(query.tags).map(tag =>
		button(`Tag: ${tag} ✕`, () => go({tags: toggle(query.tags, tag)}), ".chip", {"aria-label": `Remove the tag ${tag}`})));

	function go(change) {
		set(change);
		field.value = query.q || "";
		return Promise.all([drawChips(), run()]);
	}

	form.onsubmit = sent(() => go({q: field.value.trim()}));
	if (!query.q) field.focus();
	await go({});
	onEvent(signal, () => waits && run());
}
