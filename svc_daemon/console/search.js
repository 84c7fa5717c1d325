// The view of a search: words and meaning, within chosen buckets and tags; each hit leads to its place in the text.

import {at, attempt, button, count, frame, h, place, said, sent, show} from "./dom.js";
import {onEvent} from "./live.js";
import {getBuckets, post} from "./session.js";
import {hit} from "./source.js";

export const split = text => (text || "").split(",").filter(Boolean);

// Chips of all buckets, of which some are chosen. `change` gets the chosen slugs, with commas.
export async function bucketChips(text, change, signal) {
	const buckets = await getBuckets(signal), chosen = split(text);
	const toggled = slug => (chosen.includes(slug) ? chosen.filter(each => each !== slug) : [...chosen, slug]);
	return h("div.chips", {role: "group", "aria-label": "Buckets; all if none is chosen"}, [...new Set([...buckets.map(each => each.slug), ...chosen])].map(slug =>
		button(slug, () => change(toggled(slug).join()), ".chip", {"aria-pressed": String(chosen.includes(slug))})));
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
		const tags = each => each.tags.map(tag => button(tag, () => go({tags: [...new Set([...split(query.tags), tag])].join()}), ".chip"));
		show(outcome, suggestions.map(other), warnings.map(each => said(each, "p.warn")),
			data.length ? h("p.faint", count(data.length, "passage"), more && ", and there are more") : h("p.empty", "Nothing was found."),
			h("ol.hits", data.map(each => hit(each, each.title, said(place(each.location) || each.filename, "p.faint"), tags(each)))));
	});

	const drawChips = async () => show(chips, await bucketChips(query.b, b => go({b}), signal), split(query.tags).map(tag =>
		button(`Tag: ${tag} ✕`, () => go({tags: split(query.tags).filter(each => each !== tag).join()}), ".chip", {"aria-label": `Remove the tag ${tag}`})));

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
