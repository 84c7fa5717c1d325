// The view of a bucket: uploads, failures by reason, and its sources.

import {ask, at, attempt, badge, button, bytes, count, dotted, frame, h, keyed, leaveGone, listed, number, put, said, show, soon, stateOf, time, to, words} from "./dom.js";
import {bucketState, counts, summary} from "./buckets.js";
import {onEvent} from "./live.js";
import {longTable} from "./rows.js";
import {call, can, get, post} from "./session.js";
import {showUploads} from "./uploads.js";

const NAMED = 200;

function confirmRemoval(sources, verb, bucketId) {
	const others = source => source.bucket_ids.filter(id => id !== bucketId).length;
	const what = count(sources.length, "source"), shared = sources.filter(others).length;
	const effect = verb === "Delete"
		? ["They are deleted for good, with their stored files", shared && `; ${number(shared)} of them from other buckets, too`]
		: ["They leave this bucket", shared && `; ${number(shared)} stay in other buckets`, ". What is in no other bucket stays stored, but no search finds it"];
	const list = sources.slice(0, NAMED).map(source => h("li", said(source.title),
		h("span.faint", ` ${listed(bytes(source.size_bytes), others(source) && `also in ${count(others(source), "other bucket")}`)}`)));
	const more = sources.length > NAMED && h("li", `and ${number(sources.length - NAMED)} more`);
	return ask(`${verb} ${what}?`, h("div", h("p", effect, "."), h("ul.preview", {tabindex: "0"}, list, more)), `${verb} ${what}`);
}

function failureGroup({code}, filter, retry) {
	const title = h("strong"), example = said("", "p"), again = button("", () => retry([code]));
	const actions = h("div.actions", button("Show them", () => filter({status: "failed", error_code: code})), can("knowledge:file:create") && again);
	return Object.assign(h("li", h("div", title, example), actions), {
		update({count: all, message, retryable_count: helped}) {
			put(title, `${number(all)} × ${words(code)}`);
			put(example, message);
			put(again, `Retry ${number(helped)}${helped < all ? ` of ${number(all)}` : ""}`);
			again.hidden = !helped;
		},
	});
}

function sourceRow({id}, chosen, onchange) {
	const box = h("input", {type: "checkbox", onchange}), note = said("", "span");
	const title = said("", "a", {href: to`s/${id}`}), [state, type, size, changed] = Array.from({length: 4}, () => h("td"));
	return Object.assign(h("tr", h("td", box), h("th", {scope: "row"}, title, note), state, type, size, changed), {
		update(source) {
			const {error, warnings, tags, filename} = source;
			box.checked = chosen.has(id);
			box.ariaLabel = `Choose ${source.title}`;
			put(title, source.title);
			put(note, error ? error.message : dotted(...warnings, ...tags) || (source.title.endsWith(filename) ? "" : filename));
			title.title = source.title;
			note.title = note.textContent;
			note.className = `note ${error ? "bad" : warnings.length ? "warn" : ""}`;
			show(state, badge(stateOf(source)));
			put(type, source.type === "qa" ? "question" : source.type);
			put(size, bytes(source.size_bytes));
			show(changed, time(source.updated_at));
		},
	});
}

export async function showBucket({main, signal, rest: [slug], query, set, title}) {
	title(slug);
	const chosen = new Map(), mayAdd = can("knowledge:file:create");
	const path = at`buckets/${slug}/sources`;
	let bucket;
	const parts = frame(main, "bucket");
	const {heading, lead, about, outcome, failures, groups, helped, typed, status, types, tag, reason, bar, counted, none, table, all, body, changes} = parts;
	const say = text => show(outcome, h("p.done", {role: "status"}, text));

	const retry = codes => attempt(outcome, async () => {
		const {queued} = await post(at`buckets/${slug}/retry`, {status: "failed", codes});
		say(queued ? `${count(queued, "source")} will be tried again.` : "Another try can't help them.");
		again();
	});

	// Do something to each chosen source.
	const doEach = (work, done) => attempt(outcome, async () => {
		const all = chosen.size;
		try {
			for (const source of [...chosen.values()]) {
				await work(source);
				chosen.delete(source.id);
			}
			say(`${done} ${count(all, "source")}.`);
		} finally {
			choosing();
			again();
		}
	});
	const remove = async (verb, of) => (await confirmRemoval([...chosen.values()], verb, bucket.id)) && doEach(({id}) => call("DELETE", of(id)), verb + (verb === "Delete" ? "d" : "ed"));
	const retryOne = ({id, status}) => status === "failed" && post(at`sources/${id}/retry`);

	function choose(sources, on) {
		for (const source of sources) on ? chosen.set(source.id, source) : chosen.delete(source.id);
		choosing();
	}

	function choosing() {
		bar.hidden = !chosen.size;
		const mayDelete = can("knowledge:source:delete");
		show(bar, h("span.grow", `${number(chosen.size)} chosen`),
			mayAdd && [...chosen.values()].some(source => source.status === "failed") && button("Retry", () => doEach(retryOne, "Trying again:")),
			mayDelete && button("Detach…", () => remove("Detach", id => `${path}/${id}`)),
			mayDelete && button("Delete…", () => remove("Delete", id => at`sources/${id}`), ".danger"),
			button("Clear", () => choose([...chosen.values()]), ".quiet"));
		rows.redraw();
	}

	const filters = () => ({status: query.status || "all", type: query.type, tag: query.tag, q: query.q, error_code: query.error_code});
	const rows = longTable({
		table, body, signal,
		height: () => (matchMedia("(max-width: 40rem)").matches ? 76 : 56),
		async read(after, limit) {
			const {sources, ...page} = await get(path, {...filters(), sort: query.sort || "-updated_at", after, limit}, signal);
			return {...page, rows: sources};
		},
		make: source => sourceRow(source, chosen, event => choose(rows.held().filter(({id}) => id === source.id), event.target.checked)),
		onDraw(known, isAll) {
			const isFiltered = Object.values({...filters(), status: query.status}).some(Boolean);
			put(counted, isFiltered ? isAll ? count(known, "match", "matches") : known ? `The first ${number(known)} matches; more follow` : "Looking…" : count(isAll ? known : bucket?.counts.total ?? known, "source"));
			none.hidden = !isAll || known > 0;
			table.hidden = !none.hidden;
			typed.parentNode.hidden = counted.hidden = table.hidden && !isFiltered;
			put(none, isFiltered ? "Nothing matches these filters." : "This bucket is empty.");
		},
	});

	function filter(change) {
		set({...("status" in change && {error_code: ""}), ...change});
		drawFilters();
		attempt(outcome, () => rows.restart());
	}

	typed.value = query.q || "";
	tag.value = query.tag || "";
	typed.oninput = soon(() => filter({q: typed.value}), 150);
	tag.onchange = () => filter({tag: tag.value});
	status.onchange = () => filter({status: status.value});
	types.onchange = () => filter({type: types.value});
	reason.onclick = () => filter({error_code: ""});
	all.onchange = () => choose(rows.held(), all.checked);
	helped.onclick = () => retry();

	function drawFilters() {
		const {sort = "-updated_at", error_code: code} = query;
		status.value = query.status || "";
		types.value = query.type || "";
		reason.hidden = !code;
		put(reason, `Reason: ${words(code || "")} ✕`);
		for (const head of table.tHead.querySelectorAll("button")) {
			const by = head.value;
			head.onclick = () => filter({sort: sort === by ? `-${by}` : by});
			head.parentNode.ariaSort = sort === by ? "ascending" : sort === `-${by}` ? "descending" : "none";
		}
	}

	async function load() {
		bucket = await get(at`buckets/${slug}`, {members: "false"}, signal);
		const [label, kind] = bucketState(bucket), failed = counts(bucket)[0];
		put(heading, bucket.name || slug);
		put(about, bucket.description);
		put(lead, listed(summary(counts(bucket)), bytes(bucket.bytes), !/failed|pending|empty|ready/.test(label) && label));
		lead.classList.toggle("bad", kind === "bad");
		const found = failed ? await get(path, {group_by: "error_code"}, signal) : {groups: []};
		keyed(groups, found.groups, group => group.code, group => failureGroup(group, filter, retry));
		failures.hidden = !found.groups.length;
		helped.hidden = found.groups.filter(group => group.retryable_count).length < 2;
		rows.redraw();
	}

	const again = soon(() => Promise.all([load(), rows.restart(true)]).catch(leaveGone), 900);
	drawFilters();
	choosing();
	await Promise.all([load(), rows.restart()]);
	showUploads(slug, signal, main, parts, mayAdd && bucket.status === "active", () => bucket.counts.total);
	onEvent(signal, event => {
		if (event?.bucket_ids && !event.bucket_ids.includes(bucket.id)) return;
		if (event) changes.prepend(h("li", time(event.created_at), " ", said(event.data.title || event.data.name), ` ${event.type.split(".")[1]}`));
		if (changes.children.length > 20) changes.lastChild.remove();
		again();
	});
}
