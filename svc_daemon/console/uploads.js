// Uploads: batches of up to 100 files in a pack, resumed after failures, shown file by file.

import {at, badge, count, h, keyed, listed, number, put, said, show, soon, stateOf, wait} from "./dom.js";
import {onEvent} from "./live.js";
import {get, post, send, session} from "./session.js";

const PLACE = "svc.uploads", FILES = 100, PACK_BYTES = 200e6;
const LOST = "It was not sent. Add it again.", UNREADABLE = {message: "It can't be read. Was it changed or removed?"};
// `state` is `reading`, `sending`, `refused`, `lost` (not sent, as after a reload), or the status of the source.
let items = [];
const watchers = new Set();
const isRunning = ({state}) => state === "reading" || state === "sending";
const isBad = ({state}) => ["refused", "lost", "failed"].includes(state);

// Keep the list for a reload; if the tab's storage is too small, what is not ready.
function keep() {
	if (!session()) return;
	for (const kept of [items, items.filter(item => !item.ready), []]) {
		try {
			return sessionStorage.setItem(PLACE, JSON.stringify(kept));
		} catch {}
	}
}

const keepSoon = soon(keep, 2000);
addEventListener("pagehide", keep);

function change(some, facts) {
	for (const item of some) Object.assign(item, facts);
	if (facts) keepSoon();
	watchers.forEach(each => each());
}

const refuse = (some, {message}) => change(some, {state: "refused", error: message});

// Repeat a call while the service is away or asks to wait, and say so of the items.
async function patiently(work, waiting = []) {
	for (let pause = 500, tries = 0; ; pause = Math.min(pause * 2, 8000)) {
		try {
			return await work(tries++);
		} catch (error) {
			if (!session() || !error.retryable) throw error;
			change(waiting, {error: error.message});
			await wait(error.details.retry_after_seconds * 1000 || pause);
			change(waiting, {error: ""});
		}
	}
}

// Send bytes in parts, from where the service has them. `note(sent)` is called after each.
async function sendBytes(url, blob, some, note) {
	const step = Math.min(8e6, Math.max(262144, Math.ceil(blob.size / 16)));
	// The service may name itself otherwise than the page does.
	const put = async (range, body) => {
		const headers = {"Content-Range": `bytes ${range}/${blob.size}`, "X-Guploader-No-308": "yes"};
		const answer = await send("PUT", new URL(url).pathname, {key: "", body, headers});
		await answer.text().catch(() => {});
		return answer.headers.has("X-Http-Status-Code-Override") ? Number(/-(\d+)$/.exec(answer.headers.get("Range"))?.[1] ?? -1) + 1 : blob.size;
	};
	for (let from = 0; from < blob.size; note(from)) {
		// Of a file that has changed, fetch would say that the service does not answer.
		const to = Math.min(from + step, blob.size), part = new Blob([await blob.slice(from, to).arrayBuffer()]);
		from = await patiently(isUnsure => (isUnsure ? put("*", new Blob()) : put(`${from}-${to - 1}`, part)), some);
	}
}

// Return a copy of a file, and its hash if the browser can make it.
async function read(file) {
	const bytes = await file.arrayBuffer(), digest = await crypto.subtle?.digest("SHA-256", bytes);
	return [new Blob([bytes], {type: file.type}), digest && Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, "0")).join("")];
}

async function sendBatch(slug, mine, files) {
	const itemOf = each => mine.find(item => item.id === each.client_file_id);
	change(mine, {state: "sending", sent: 0});
	const body = {
		manifest: {version: 1, items: mine.map(({id, name}) => ({client_file_id: id, title: name}))},
		files: mine.map(({id, name, size, sha256}) => ({client_file_id: id, filename: name.split("/").pop(), size_bytes: size, content_type: files.get(id).type || null, sha256})),
		pack: mine.every(item => item.sha256),
	};
	const headers = {"Idempotency-Key": mine[0].id};
	const batch = await patiently(() => post(at`buckets/${slug}/batches`, body, null, {headers}), mine);
	for (const each of batch.rejected) refuse([itemOf(each)], each.error);
	change(batch.items.map(itemOf), {batch: batch.batch_id});
	if (batch.pack) {
		const blob = new Blob([...batch.items].sort((a, b) => a.offset - b.offset).map(each => files.get(each.client_file_id)));
		await sendBytes(batch.pack.upload_url, blob, batch.items.map(itemOf), sent => {
			for (const each of batch.items) itemOf(each).sent = Math.max(0, Math.min(each.size_bytes, sent - each.offset));
			change([]);
		});
	} else {
		for (const each of batch.items) {
			const item = itemOf(each);
			await sendBytes(each.upload_url, files.get(item.id), [item], sent => change([item], {sent})).catch(error =>
				refuse([item], error instanceof DOMException ? UNREADABLE : error));
		}
	}
	await finish(slug, batch.batch_id, "abandon_pending");
}

// Make sources of what was sent, and note what was not. Without `mode`, a copy of this tab can go on sending.
async function finish(slug, batchId, mode) {
	const itemsOf = each => items.filter(item => item.batch === batchId && item.id === each.client_file_id);
	const path = at`buckets/${slug}/batches/${batchId}/finalize`, found = await patiently(() => post(path, {}));
	for (const each of [...found.finalized, ...found.replayed]) change(itemsOf(each), {state: each.status || "queued", source: each.knowledge_id});
	for (const each of found.failed) refuse(itemsOf(each), each.error);
	if (found.pending.some(each => each.reason === "time_budget_exhausted")) return finish(slug, batchId, mode);
	for (const each of found.pending) change(itemsOf(each).filter(isRunning), {state: "lost", error: LOST});
	if (mode && found.pending.length) await post(path, {mode}).catch(() => {});
	follow(batchId);
}

async function follow(batchId) {
	const found = await get(at`knowledge/batches/${batchId}`, {include_items: "true"}).catch(() => ({items: []}));
	const byId = new Map(items.map(item => [item.id, item]));
	for (const {client_file_id: id, knowledge_id: source, status: state, ready, error} of found.items) {
		if (source && byId.has(id)) Object.assign(byId.get(id), {state, ready, source, error: error?.message});
	}
	change([], {});
}

async function findTwin(slug, item) {
	const {sources: [twin]} = await get(at`buckets/${slug}/sources`, {title: item.name, sha256: item.sha256, limit: 1});
	if (twin) change([item], {state: twin.status, ready: twin.ready, source: twin.id});
}

// Add files, as pairs of name and file or null. What the bucket has under this title is not sent again.
async function addFiles(slug, pairs, isFilled) {
	const added = pairs.map(([name, file], at) => ({id: `${Math.random()}-${at}`, bucket: slug, name, size: file?.size || 0, state: "reading"}));
	items = items.concat(added);
	change([], {});
	for (let at = 0; at < added.length; ) {
		const group = [], files = new Map();
		for (let size = 0; at < added.length && group.length < FILES && size + added[at].size <= Math.max(PACK_BYTES, added[at].size); at++) {
			const item = added[at], {id, name, size: own} = item;
			let file = pairs[at][1];
			try {
				if (own < PACK_BYTES) [file, item.sha256] = await read(file);
				files.set(id, file);
			} catch {
				refuse([item], UNREADABLE);
				continue;
			}
			const twin = item.sha256 && items.find(one => one.source && one.bucket === slug && one.name === name && one.sha256 === item.sha256);
			if (twin) items.splice(items.indexOf(item), 1);
			else size += group.push(item) && own;
		}
		await Promise.all(group.map(item => isFilled && item.sha256 && findTwin(slug, item).catch(() => {})));
		const mine = group.filter(isRunning);
		if (mine.length) await sendBatch(slug, mine, files).catch(error => mine.forEach((item, at) => isRunning(item) && refuse([item], error.details?.errors?.find(({path}) => path === `files.${at}`) || error)));
	}
}

// After a reload: finish what was sent, and say what was not.
export function restoreUploads() {
	const kept = sessionStorage.getItem(PLACE);
	if (kept && items.length) return;
	items = JSON.parse(kept || "[]");
	change(items.filter(item => isRunning(item) && !item.batch), {state: "lost", error: LOST});
	for (const {batch, bucket} of new Map(items.filter(item => item.batch && isRunning(item)).map(item => [item.batch, item])).values()) finish(bucket, batch).catch(() => {});
}

// The files of a dropped entry, as pairs of name and file; null for what can't be read.
async function readEntry(entry, start) {
	const name = start + entry.name, found = [];
	try {
		if (entry.isFile) return [[name, await new Promise((take, fail) => entry.file(take, fail))]];
		const reader = entry.createReader();
		for (let some; (some = await new Promise((take, fail) => reader.readEntries(take, fail))).length; ) {
			for (const each of some) found.push(await readEntry(each, `${name}/`));
		}
	} catch {
		found.push([[name, null]]);
	}
	return found.flat();
}

function itemRow({name, size}) {
	const state = h("span.state"), note = said("", "span.note.bad");
	const bar = h("progress", {max: size || 1, "aria-label": `Sent of ${name}`});
	return Object.assign(h("li", state, h("span.grow", said(name), note), bar), {
		update(item) {
			show(state, badge(isBad(item) ? [item.state === "lost" ? "not sent" : item.state, "bad"] : stateOf({...item, status: item.state})));
			bar.value = item.sent || 0;
			bar.hidden = item.state !== "sending";
			put(note, item.error || "");
		},
	});
}

export function showUploads(slug, signal, main, {zone, panel, sums, clear, list}, mayAdd, total) {
	const isOver = item => item.bucket === slug && (item.ready || isBad(item));
	clear.onclick = () => {
		items = items.filter(item => !isOver(item));
		change([], {});
	};
	const draw = soon(() => {
		const mine = items.filter(item => item.bucket === slug), bad = mine.filter(isBad).length;
		panel.hidden = !mine.length;
		clear.hidden = !mine.some(isOver);
		put(sums, listed(bad && `${number(bad)} failed`, `${number(mine.filter(item => item.ready).length)} of ${count(mine.length, "file")} ready`));
		sums.classList.toggle("bad", bad > 0);
		const order = item => (isBad(item) ? 0 : item.ready ? 2 : 1);
		keyed(list, mine.sort((a, b) => order(a) - order(b)), item => item.id, itemRow);
	}, 150);
	watchers.add(draw);
	signal.addEventListener("abort", () => watchers.delete(draw));
	draw();
	onEvent(signal, soon(() => new Set(items.filter(item => item.source && !isOver(item)).map(item => item.batch)).forEach(follow), 800));
	zone.hidden = !mayAdd;
	if (!mayAdd) return;
	for (const input of zone.querySelectorAll("input")) {
		input.nextElementSibling.onclick = () => input.click();
		input.onchange = () => {
			addFiles(slug, [...input.files].map(file => [file.webkitRelativePath || file.name, file]), total());
			input.value = "";
		};
	}
	for (const name of ["dragover", "dragleave", "drop"]) main.addEventListener(name, async event => {
		if (!event.dataTransfer.types.includes("Files")) return;
		event.preventDefault();
		zone.classList.toggle("over", name === "dragover");
		if (name !== "drop") return;
		const entries = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry());
		addFiles(slug, (await Promise.all(entries.filter(Boolean).map(entry => readEntry(entry, "")))).flat(), total());
	}, {signal});
}

addEventListener("beforeunload", event => items.some(isRunning) && event.preventDefault());
