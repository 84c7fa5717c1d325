// The key of this tab, only in its storage and a header; and calls of the API.

import {at, search} from "./dom.js";

const PLACE = "svc.key";
const channel = new BroadcastChannel("svc-console");
let held = JSON.parse(sessionStorage.getItem(PLACE));
let onEnd;

export const session = () => held;
export const onSessionEnd = handler => (onEnd = handler);
export const can = capability => held?.capabilities.includes(capability);

function keep(facts) {
	held = facts;
	sessionStorage.setItem(PLACE, JSON.stringify(facts));
	return true;
}

function end(reason) {
	held = null;
	sessionStorage.clear();
	onEnd(reason);
}

channel.addEventListener("message", ({data}) => {
	if (data.wanted && held) channel.postMessage({given: held});
	if (data.ended && held?.key === data.ended) end("You signed out in another tab.");
});

// What another tab is given later is not for this one.
const askOthers = () => new Promise(resolve => {
	const signal = AbortSignal.timeout(400);
	signal.onabort = () => resolve(false);
	channel.addEventListener("message", ({data}) => data.given && !held && resolve(keep(data.given)), {signal});
	channel.postMessage({wanted: true});
});

// Find a key: by the code in the address, which is erased; in this tab; in another one.
export async function begin() {
	const code = /^#code=(.+)/.exec(location.hash)?.[1];
	if (!code) return Boolean(held) || askOthers();
	history.replaceState(null, "", `${location.pathname}#/`);
	return keep({...(await post(at`console/sessions/exchange`, {code}, null, {key: ""})), isOwn: true});
}

export async function take(key) {
	keep({...(await get(at`limits`, {}, null, key)).key, key});
}

// End the session in all tabs, and revoke its key unless it was pasted.
export async function signOut() {
	const {key, isOwn, id} = held;
	if (isOwn) await call("DELETE", at`keys/${id}`).catch(() => {});
	channel.postMessage({ended: key});
	if (held) end("You have signed out.");
}

const HINTS = {
	unreachable: "Is it running? The command svc daemon start starts it.",
	bucket_store_indexing_pending: "This page goes on by itself.",
};

const failure = (status, {message, code, details = {}, retryable}) => Object.assign(new Error(message), {status, code, details, retryable, hint: HINTS[code]});

// The connection was lost, maybe within a response.
const lost = error => {
	throw error.name === "AbortError" ? error : failure(0, {code: "unreachable", message: "The service does not answer.", retryable: true});
};

export async function send(method, path, {body, headers = {}, signal, key = held?.key} = {}) {
	const isJson = body && !(body instanceof Blob);
	if (key) headers.Authorization = `Bearer ${key}`;
	if (isJson) headers["Content-Type"] = "application/json";
	const options = {method, signal, headers, body: isJson ? JSON.stringify(body) : body, cache: "no-store", credentials: "omit"};
	const answer = await fetch(path, options).catch(lost);
	// Another tab may have deleted it.
	if (answer.ok || method + answer.status === "DELETE404") return answer;
	const {error} = await answer.json().catch(() => ({}));
	if (answer.status === 401 && key && key === held?.key) end("Your session has ended: its key has expired or was revoked.");
	throw failure(answer.status, error || {message: `The service answered ${answer.status}.`});
}

// Send a request, and read the response as JSON. One that is not read keeps its connection.
export const call = async (method, path, options) => (await send(method, path, options)).json().catch(lost);
export const get = (path, query, signal, key) => call("GET", path + search(query), {signal, key});
export const post = (path, body, signal, options) => call("POST", path, {body, signal, ...options});

// Read server-sent events: calls `take(id, data)` for each; a comment has no data.
export async function readEvents(answer, take) {
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	for (let rest = ""; ; ) {
		const {done, value} = await reader.read().catch(lost);
		if (done) return;
		const blocks = (rest + value).split("\n\n");
		rest = blocks.pop();
		for (const block of blocks) take(/^id: ?(.*)$/m.exec(block)?.[1], JSON.parse(/^data: ?(.*)$/m.exec(block)?.[1] || "null"));
	}
}

export const getBuckets = async (signal, query) => (await get(at`buckets`, {members: "false", ...query}, signal)).buckets;
