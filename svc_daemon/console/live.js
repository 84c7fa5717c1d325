// The stream of events: one for the tab, closed while that is hidden, and resumed.

import {at, search, wait} from "./dom.js";
import {readEvents, send, session} from "./session.js";

const handlers = new Set();
let last = null, open = null, told, heard, watch, current;

// `handler(null)` is called when some events may have been missed.
export function onEvent(signal, handler) {
	handlers.add(handler);
	signal.addEventListener("abort", () => handlers.delete(handler));
}

export const onState = watcher => (watch = watcher);

function enter(name) {
	if (current !== name) watch((current = name));
}

// Of a copy: a handler may add others.
const tell = event => {
	told = true;
	[...handlers].forEach(each => each(event));
};

// A view has missed what came while it was read.
export function reading(view) {
	told = false;
	return view.then(() => told && tell(null));
}

async function follow(signal) {
	for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
		heard = performance.now();
		try {
			const headers = {Accept: "text/event-stream", ...(last && {"Last-Event-ID": last})};
			const answer = await send("GET", at`events` + search({after: !last && "latest"}), {headers, signal});
			pause = 500;
			enter("live");
			tell(null);
			await readEvents(answer, (id, event) => {
				heard = performance.now();
				last = id || last;
				if (event) tell(event);
			});
		} catch (error) {
			if (error.code === "events_expired") last = null;
			if (error.status === 403) {
				heard = Infinity;
				return enter("off");
			}
		}
		if (signal.aborted || !session()) return;
		enter("lost");
		await wait(pause);
		if (signal.aborted) return;
	}
}

// Follow the events while there is a session and the tab is in sight.
export function update() {
	open?.abort();
	if (!session()) last = null;
	if (!session() || document.hidden) return enter("off");
	open = new AbortController();
	if (current !== "lost") enter("connecting");
	follow(open.signal);
}

// The service says something every 15 s: a silent connection is dead.
setInterval(() => {
	if (!open || open.signal.aborted || performance.now() - heard < 40000) return;
	enter("lost");
	update();
}, 5000);

document.addEventListener("visibilitychange", update);
// A page that is kept for "back" must hold no connection.
addEventListener("pagehide", () => open?.abort());
addEventListener("pageshow", event => event.persisted && update());
