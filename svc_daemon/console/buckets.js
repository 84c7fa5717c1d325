// The view of all buckets, of what the key may do, and of how the service is.

import {at, attempt, badge, bytes, count, dotted, frame, h, keyed, listed, number, put, said, sent, show, soon, time, to, words} from "./dom.js";
import {onEvent} from "./live.js";
import {call, can, get, getBuckets, session} from "./session.js";

// How a bucket is, never better than its sources: words, and `bad`, `wait`, `ok` or `none`.
export function bucketState({status, lastDeleteError, bucketStore: store}) {
	if (status === "deleting") return ["being deleted", "wait"];
	if (lastDeleteError) return ["could not be deleted", "bad"];
	if (store.failed_member_count) return [`${number(store.failed_member_count)} failed`, "bad"];
	if (store.status === "maintenance") return ["index being rebuilt", "wait"];
	if (store.status === "degraded") return ["searches lack some", "bad"];
	if (store.pending_member_count) return [`${number(store.pending_member_count)} pending`, "wait"];
	if (status === "archived") return ["archived", "none"];
	return store.member_count ? ["all ready", "ok"] : ["empty", "none"];
}

// Failed, pending, and found by searches: none while the index is rebuilt.
export const counts = ({bucketStore: store}) =>
	[store.failed_member_count, store.pending_member_count, store.status === "maintenance" ? 0 : store.indexed_member_count];

export const summary = ([failed, pending, ready]) =>
	listed(failed && `${number(failed)} failed`, pending && `${number(pending)} pending`, `${number(ready)} ready`);

const worst = bucket => ["bad", "wait", "ok", "none"].indexOf(bucketState(bucket)[1]);

function bucketRow({slug}) {
	const cells = ["Failed", "Pending", "Ready", "Size"].map(label => h("td.number", {"data-label": label}));
	const name = said("", "a", {href: to`b/${slug}`}), state = h("td"), note = h("span.faint", slug);
	return Object.assign(h("tr", h("th", {scope: "row"}, name, note), state, cells), {
		update(bucket) {
			put(name, bucket.name || slug);
			note.hidden = bucket.name === slug;
			show(state, badge(bucketState(bucket)));
			[...counts(bucket).map(number), bytes(bucket.bytes)].forEach((text, at) => put(cells[at], text));
			cells[0].classList.toggle("bad", counts(bucket)[0] > 0);
		},
	});
}

function keyLine(all, verbs) {
	const {buckets, expires_at: end, name} = session();
	const may = listed(...[...verbs.children].filter(each => can(each.title)).map(each => each.textContent));
	const where = buckets ? listed(...buckets.map(id => all.find(each => each.id === id)?.slug || id)) : "all buckets";
	const until = end && `, until ${time(end).textContent}`;
	return ["This key (", said(name), `) may ${may || "do nothing"} in ${where}`, until, "."];
}

async function healthLine(signal, meanings) {
	const {status, queue, vectors, disk, shortage, last_trouble: last} = await get(at`status`, {}, signal);
	const tasks = queue.queued + queue.running, {missing, seconds_left: left} = vectors;
	const isBad = status !== "ok" || shortage || vectors.state === "failing" || (last && !last.until);
	return [dotted(
		status !== "ok" && "The service can't write, and needs its operator",
		shortage && `Waiting for ${words(shortage.lack)}`,
		last && (last.until ? `Last trouble: ${last.message} (until ${time(last.until).textContent})` : last.message),
		tasks ? `${count(tasks, "task")} in the queue` : "Nothing in the queue",
		[...meanings.children].find(each => each.title === vectors.state)?.textContent,
		vectors.model && missing && `${count(missing, "passage")} without vectors${left ? `, about ${count(Math.ceil(left / 60), "minute")} left` : ""}`,
		disk && `${bytes(disk.free_bytes)} free on the disk`,
	), isBad && "bad"];
}

export async function showBuckets({main, signal, title}) {
	title("Buckets");
	const {total, table, rows, empty, form, slug, outcome, health, key, verbs, meanings} = frame(main, "buckets");

	async function load() {
		const buckets = await getBuckets(signal, {include_archived: "true"});
		keyed(rows, buckets.sort((a, b) => worst(a) - worst(b) || (a.slug < b.slug ? -1 : 1)), each => each.id, bucketRow);
		const sums = buckets.map(counts).reduce((sum, each) => sum.map((value, at) => value + each[at]), [0, 0, 0]);
		put(total, summary(sums));
		total.classList.toggle("bad", sums[0] > 0);
		table.hidden = total.hidden = !buckets.length;
		empty.hidden = buckets.length > 0;
		show(key, keyLine(buckets, verbs));
		const [line, kind] = await healthLine(signal, meanings);
		put(health, line);
		health.className = kind || "";
	}

	form.hidden = !can("knowledge:bucket:create");
	form.onsubmit = sent(() => attempt(outcome, async () => {
		await call("PUT", at`buckets/${slug.value}`);
		location.hash = to`b/${slug.value}`;
	}));
	await load();
	onEvent(signal, soon(() => load().catch(() => {}), 700));
}
