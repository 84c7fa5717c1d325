// Uploads: batches of up to 100 files with a pack of their bytes, resumed after failures, shown file by file.

import {at, badge, count, h, keyed, listed, number, put, said, show, soon, stateOf, wait} from "./dom.js";
import {onEvent} from "./live.js";
import {get, post, send, session} from "./session.js";

const PLACE = "svc.uploads", FILES = 100, PACK_BYTES = 200e6;
// `state` is `reading`, `sending`, `refused`, `lost` (not sent, as after a reload), or the status of the source.
let items = [];
const watchers = new Set();
const write = () => session() && sessionStorage.setItem(PLACE, JSON.stringify(items));
const isRunning = ({state}) => state === "reading" || state === "sending";
const isBad = ({state}) => ["refused", "lost", "failed"].includes(state);

function change(some, facts) {
	for (const item of some) Object.assign(item, facts);
	if (facts) write();
	watchers.forEach(each => each());
}

// Repeat a call while the service is away or asks to wait.
async function patiently(work) {
	for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
		try {
			return await work();
		} catch (error) {
			if (!session() || !error.retryable) throw error;
			await wait(error.details.retry_after_seconds * 1000 || pause);
		}
	}
}

// Send bytes in parts, from where the service has them. `note(sent)` is called after each.
async function sendBytes(url, blob, note) {
	const step = Math.min(8e6, Math.max(262144, Math.ceil(blob.size / 16)));
	// The service may name itself otherwise than the page does.
	const put = async (range, body) => {
		const headers = {"Content-Range": `bytes ${range}/${blob.size}`, "X-Guploader-No-308": "yes"};
		const answer = await send("PUT", new URL(url).pathname, {key: "", body, headers});
		await answer.text().catch(() => {});
		return answer.headers.has("X-Http-Status-Code-Override") ? Number(/-(\d+)$/.exec(answer.headers.get("Range"))?.[1] ?? -1) + 1 : blob.size;
	};
	for (let from = 0, isUnsure = false; from < blob.size; note(from)) {
		from = await patiently(() => {
			const to = Math.min(from + step, blob.size), again = isUnsure;
			isUnsure = !again;
			return again ? put("*", new Blob()) : put(`${from}-${to - 1}`, blob.slice(from, to)).then(stored => ((isUnsure = false), stored));
		});
	}
}

async function sha256(file) {
	const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
	return Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, "0")).join("");
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
	const batch = await patiently(() => post(at`buckets/${slug}/batches`, body, null, {headers}));
	for (const each of batch.rejected) change([itemOf(each)], {state: "refused", error: each.error.message});
	change(batch.items.map(itemOf), {batch: batch.batch_id});
	if (batch.pack) {
		const blob = new Blob([...batch.items].sort((a, b) => a.offset - b.offset).map(each => files.get(each.client_file_id)));
		await sendBytes(batch.pack.upload_url, blob, sent => {
			for (const each of batch.items) itemOf(each).sent = Math.max(0, Math.min(each.size_bytes, sent - each.offset));
			change([]);
		});
	} else {
		for (const each of batch.items) await sendBytes(each.upload_url, files.get(each.client_file_id), sent => change([itemOf(each)], {sent}));
	}
	await finish(slug, batch.batch_id);
}

// Make sources of what was sent of a batch, and note what was not.
async function finish(slug, batchId) {
	const itemsOf = each => items.filter(item => item.batch === batchId && item.id === each.client_file_id);
	const found = await patiently(() => post(at`buckets/${slug}/batches/${batchId}/finalize`, {}));
	for (const each of [...found.finalized, ...found.replayed]) change(itemsOf(each), {state: each.status || "queued", source: each.knowledge_id});
	for (const each of found.failed) change(itemsOf(each), {state: "refused", error: each.error.message});
	if (found.pending.some(each => each.reason === "time_budget_exhausted")) return finish(slug, batchId);
	const reasons = {checksum_mismatch: "The file changed while it was sent. Add it again.", blob_not_uploaded: "It was not sent. Add it again."};
	for (const each of found.pending) change(itemsOf(each), {state: "lost", error: reasons[each.reason]});
	if (found.pending.length) await post(at`buckets/${slug}/batches/${batchId}/finalize`, {mode: "abandon_pending"}).catch(() => {});
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

// Add files, as pairs of name and file. What this tab has sent there already is left out.
async function addFiles(slug, pairs) {
	const files = new Map();
	const added = pairs.map(([name, file], at) => {
		const item = {id: `${Date.now()}-${Math.random()}-${at}`, bucket: slug, name, size: file.size, state: "reading"};
		files.set(item.id, file);
		return item;
	});
	items.push(...added);
	change([], {});
	for (let at = 0; at < added.length; ) {
		const group = [];
		for (let size = 0; at < added.length && group.length < FILES && size + added[at].size <= Math.max(PACK_BYTES, added[at].size); at++) {
			const item = added[at], {name, size: own} = item;
			if (crypto.subtle && own < PACK_BYTES) item.sha256 = await sha256(files.get(item.id)).catch(() => undefined);
			const twin = item.sha256 && items.find(one => one.source && one.bucket === slug && one.name === name && one.sha256 === item.sha256);
			if (twin) items.splice(items.indexOf(item), 1);
			else size += group.push(item) && own;
		}
		if (group.length) await sendBatch(slug, group, files).catch(error => change(group.filter(isRunning), {state: "refused", error: error.message}));
	}
}

// After a reload: finish what was sent, and say what was not.
export function restoreUploads() {
	if (items.length) return;
	items = JSON.parse(sessionStorage.getItem(PLACE) || "[]");
	change(items.filter(item => isRunning(item) && !item.batch), {state: "lost", error: "The page was reloaded before it was sent. Add it again."});
	for (const {batch, bucket} of new Map(items.filter(item => item.batch && isRunning(item)).map(item => [item.batch, item])).values()) finish(bucket, batch).catch(() => {});
}

async function readEntry(entry, start) {
	const name = start + entry.name;
	if (entry.isFile) return [[name, await new Promise((take, fail) => entry.file(take, fail))]];
	const reader = entry.createReader(), found = [];
	for (let some; (some = await new Promise((take, fail) => reader.readEntries(take, fail))).length; ) {
		for (const each of some) found.push(...(await readEntry(each, `${name}/`)));
	}
	return found;
}

function itemRow({name, size}) {
	const state = h("span.state"), note = said("", "span.note.bad");
	const bar = h("progress", {max: size || 1, "aria-label": `Sent of ${name}`});
	return Object.assign(h("li", state, h("span.grow", said(name), note), bar), {
		update(item) {
			const label = {reading: "waiting", sending: "being sent", refused: "refused", lost: "not sent"}[item.state];
			show(state, badge(label ? [label, isBad(item) ? "bad" : "wait"] : stateOf({...item, status: item.state})));
			bar.value = item.sent || 0;
			bar.hidden = item.state !== "sending";
			put(note, item.error || "");
		},
	});
}

export function showUploads(slug, signal, main, mayAdd) {
	const [zone, panel, summary, clear, list] = [".drop", ".uploads", ".uploads p", ".uploads button", ".files"].map(each => main.querySelector(each));
	const isOver = item => item.bucket === slug && (item.ready || isBad(item));
	clear.onclick = () => {
		items = items.filter(item => !isOver(item));
		change([], {});
	};
	const draw = soon(() => {
		const mine = items.filter(item => item.bucket === slug), bad = mine.filter(isBad).length;
		panel.hidden = !mine.length;
		clear.hidden = !mine.some(isOver);
		put(summary, listed(bad && `${number(bad)} failed`, `${number(mine.filter(item => item.ready).length)} of ${count(mine.length, "file")} ready`));
		summary.classList.toggle("bad", bad > 0);
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
			addFiles(slug, [...input.files].map(file => [file.webkitRelativePath || file.name, file]));
			input.value = "";
		};
	}
	for (const name of ["dragover", "dragleave", "drop"]) main.addEventListener(name, async event => {
		if (!event.dataTransfer.types.includes("Files")) return;
		event.preventDefault();
		zone.classList.toggle("over", name === "dragover");
		if (name !== "drop") return;
		const entries = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry());
		addFiles(slug, (await Promise.all(entries.filter(Boolean).map(entry => readEntry(entry, "")))).flat());
	}, {signal});
}

addEventListener("beforeunload", event => items.some(isRunning) && event.preventDefault());
