// The view of a source: facts, troubles, text by passages, and whether a query finds it.

import {at, attempt, badge, button, bytes, count, cutter, dotted, frame, h, leaveGone, listed, marked, number, place, put, said, search, sent, show, soon, stateOf, time, to, trouble, words} from "./dom.js";
import {onEvent} from "./live.js";
import {can, get, getBuckets, post, send} from "./session.js";

// The address of a place in a source's text. `marks` are relative to its start.
export const placeOf = (id, {char_start: from, char_end: end}, marks) =>
	to`s/${id}` + search({at: `${from}-${end}`, marks: marks.slice(0, 20).map(mark => mark.map(each => from + each).join("-")).join()});

const ranges = (text = "") => [...text.matchAll(/(\d+)-(\d+)/g)].map(([, ...range]) => range.map(Number));

// The text by passages around the place `here`, with what is in none.
export function passages({text, chunks}, here, marks, most = 300) {
	const {cut, length} = cutter(text), blocks = [], list = h("ol.passages");
	let end = 0;
	const between = to => to > end && cut(end, to).trim() && blocks.push({from: end, to});
	for (const {location} of chunks.sort((a, b) => a.location.char_start - b.location.char_start)) {
		between(location.char_start);
		const from = Math.max(end, location.char_start);
		end = Math.max(from, location.char_end);
		if (end > from) blocks.push({from, to: end, label: place(location)});
	}
	between(length);
	const overlaps = ([from, to], block) => from < block.to && to > block.from;
	const block = each => h(here && overlaps(here, each) ? "li.hit" : "label" in each ? "li" : "li.gap", h("p.faint", each.label),
		h("div.text", {dir: "auto"}, marked("label" in each ? cut(each.from, each.to) : cut(each.from, each.to).trim(), marks.filter(mark => overlaps(mark, each)).map(mark => mark.map(edge => edge - each.from)))));
	let first = Math.max(0, here ? blocks.findIndex(each => each.to > here[0]) - 3 : 0), last = first;
	const draw = () => {
		put(before, `Show what is before (${number(first)})`);
		put(after, `Show more (${number(blocks.length - last)})`);
		before.hidden = !first;
		after.hidden = last === blocks.length;
	};
	const more = () => (list.append(...blocks.slice(last, (last = Math.min(blocks.length, last + most))).map(block)), draw());
	const after = button("", more), before = button("", () => (list.prepend(...blocks.slice(0, first).map(block)), (first = 0), draw()));
	more();
	return h("div", before, list, after);
}

function why({named, terms, semantic}) {
	const found = terms.map(({term, parts}) => (parts.includes("text") ? term : `${term} (in the ${parts.join(", ")})`));
	return dotted(named && "The query names this document", found.length ? `Has the words ${listed(...found)}` : "Has none of the words",
		semantic && `Similar in meaning: ${Math.round(Math.max(0, semantic.cosine) * 100)} of 100`);
}

export const hit = (found, label, ...more) => h("li", h("p.title", said(label, "a", {href: placeOf(found.source_id, found.location, found.highlights)})),
	...more, h("blockquote", {dir: "auto"}, marked(found.text, found.highlights)), h("p.faint", why(found.explain)));

// Save the stored bytes as a file. They are never shown as a page.
async function download({id, filename}) {
	const blob = await (await send("GET", at`sources/${id}/content`)).blob();
	const href = URL.createObjectURL(new Blob([blob], {type: "application/octet-stream"}));
	h("a", {href, download: filename}).click();
	setTimeout(() => URL.revokeObjectURL(href), 60000);
}

async function facts(source, signal) {
	const {task, extraction: read, source_url: url, bucket_ids: ids} = source;
	const work = task && (await get(at`knowledge/tasks/${task.id}`, {}, signal).catch(() => null));
	const buckets = await getBuckets(signal).catch(() => []);
	const slug = id => buckets.find(each => each.id === id)?.slug || id;
	const rows = {
		In: ids.map((id, index) => [index ? ", " : "", h("a", {href: to`b/${slug(id)}`}, slug(id))]),
		File: [said(source.filename), ` (${listed(source.content_type, bytes(source.size_bytes))})`],
		From: url && (/^https?:/.test(url) ? h("a", {href: url, rel: "noreferrer", target: "_blank"}, url) : said(url)),
		Tags: source.tags.length && said(listed(...source.tags)),
		Question: source.question && said(`${source.question} ${source.answer}`),
		"Title inside": read?.title && said(read.title),
		Read: read && listed(count(read.characters, "character"), read.pages && count(read.pages, "page"), count(read.chunks, "passage"), ...Object.entries(read.parts).map(([name, all]) => `${number(all)} ${words(name)}`)),
		Task: work && [listed(work.status, `attempt ${work.attempt} of ${work.max_attempts}`), work.next_attempt_at && [", again ", time(work.next_attempt_at)]],
		Added: time(source.created_at),
		Changed: time(source.updated_at),
	};
	return h("dl", Object.entries(rows).filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", value)]));
}

export async function showSource({main, signal, rest: [id], query, title, isBack}) {
	const {head, outcome, finder, form, wanted, found, left, hiddenList, whole, text} = frame(main, "source");
	let source;

	async function load() {
		source = await get(at`sources/${id}`, {}, signal);
		const {error, warnings, waits_for: lack, status, extraction} = source;
		title(source.title);
		finder.hidden = !source.ready || !can("knowledge:search");
		const again = () => post(at`sources/${id}/retry`).then(load);
		show(head, said(source.title, "h1"), badge(stateOf(source)), lack && ` It waits: ${lack.message}`,
			error && h("div.trouble", said(error.message, "p"), h("p.faint", words(error.code))), warnings.map(each => said(each, "p.warn")), await facts(source, signal),
			h("div.actions", status === "failed" && can("knowledge:file:create") && button("Try again", () => attempt(outcome, again)),
				can("knowledge:read") && button("Download the original", () => attempt(outcome, () => download(source))),
				extraction?.hidden > 0 && button(`Show what was left out (${count(extraction.hidden, "character")})`, () => attempt(outcome, showHidden))));
	}

	async function showHidden() {
		const {hidden} = await get(at`sources/${id}/text`, {hidden: "true"}, signal);
		show(hiddenList, hidden.map(each => h("li", said(each.text), h("span.faint", ` ${listed(each.reason, each.page && `page ${each.page}`, each.line && `line ${each.line}`)}`))));
		left.hidden = false;
	}

	const showText = () => attempt(outcome, async () => {
		if (!source.extraction || !can("knowledge:read")) return;
		const [here] = ranges(query.at), marks = ranges(query.marks);
		show(text, passages(await get(at`sources/${id}/text`, {}, signal), here, marks.length || !here ? marks : [here]));
		whole.hidden = false;
		if (here && !isBack) text.querySelector(".hit")?.scrollIntoView({block: "center"});
	});

	try {
		await load();
	} catch (error) {
		const {replaced_by: next} = error.details || {};
		if (!next) throw error;
		return show(head, trouble(error), h("a", {href: to`s/${next}`}, "Show the source that replaced it"));
	}
	form.onsubmit = sent(() => attempt(found, async () => {
		const find = body => post(at`search`, {query: wanted.value, explain: true, ...body});
		const [{data}, all] = await Promise.all([find({source_ids: [id], max_num_results: 5}), find({buckets: source.bucket_ids, max_num_results: 50})]);
		const rank = all.data.findIndex(each => each.source_id === id) + 1;
		show(found, h("p", rank ? `Yes: result ${number(rank)} of a search in its buckets.` : data.length ? "It matches, but 50 other results come first." : "No: nothing in it matches."),
			h("ol.hits", data.map(each => hit(each, place(each.location) || "The passage"))));
	}));
	await showText();
	const again = soon(async () => {
		const {status} = source;
		await load().catch(leaveGone);
		if (source.status !== status) showText();
	}, 500);
	onEvent(signal, event => (!event || event.source_id === id) && again());
}
