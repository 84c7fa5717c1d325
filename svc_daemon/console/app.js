// The frame of the console: signing in, the place in the address, and which view is shown there.

import { showAsk } from "./ask.js";
import { showBucket } from "./bucket.js";
import { showBuckets } from "./buckets.js";
import { attempt, button, h, live, put, search, sent, show, time, trouble } from "./dom.js";
import { onEvent, onState, update } from "./live.js";
import { showSearch } from "./search.js";
import { begin, onSessionEnd, session, signOut, take } from "./session.js";
import { showSource } from "./source.js";
import { restoreUploads } from "./uploads.js";

// Views by the first part of the address: `#/b/docs?status=failed` shows what failed in the bucket `docs`.
const VIEWS = { "": showBuckets, b: showBucket, s: showSource, search: showSearch, ask: showAsk };
const TABS = { "": "Buckets", search: "Search", ask: "Ask" };

const main = h("main", { id: "main", tabindex: "-1" });
const tabs = h("nav", { "aria-label": "Views" });
const liveness = h("span.live", { role: "status" });
const out = button("Sign out", signOut, ".quiet");
const announcer = live("p.unseen");
let shown = new AbortController();

function title(text) {
	document.title = `${text} · svc`;
}

async function showView() {
	shown.abort();
	if (!session()) return showSignIn();
	shown = new AbortController();
	const { signal } = shown;
	const [, where, asked] = /^#?\/?([^?]*)\??(.*)/.exec(location.hash);
	const [name, ...rest] = where.split("/").map(decodeURIComponent);
	const query = Object.fromEntries(new URLSearchParams(asked));
	// Change the filters in the address without leaving the view.
	const set = (change) => history.replaceState(history.state, "", `#/${where}${search(Object.assign(query, change))}`);
	const top = history.state?.y || 0;
	out.hidden = false;
	show(tabs, Object.entries(TABS).map(([each, label]) => h("a", { href: `#/${each}`, "aria-current": each === name && "page" }, label)));
	show(main);
	scrollTo(0, 0);
	try {
		await (Object.hasOwn(VIEWS, name) ? VIEWS[name] : showBuckets)({ main, signal, rest, query, set, title, isBack: top > 0 });
		if (top && !signal.aborted) scrollTo(0, top);
		put(announcer, document.title);
	} catch (error) {
		if (signal.aborted) return;
		main.append(trouble(error), button("Try again", showView));
		// As soon as the service answers again, so does the view.
		onEvent(signal, (event) => event || showView());
	}
}

function showSignIn(...reason) {
	title("Sign in");
	show(tabs);
	out.hidden = true;
	const field = h("input", { id: "key", type: "password", autocomplete: "off", required: true });
	const outcome = live("div", reason);
	const onsubmit = sent(() => attempt(outcome, () => take(field.value.trim()).then(start)));
	show(main, h("section.narrow", h("h1", "Sign in"), outcome,
		h("p", "Run this in a terminal. It opens the console, signed in:"), h("pre", "svc console"),
		h("form", { onsubmit }, h("label", { for: "key" }, "Or paste an API key of this service"), h("div.line", field, h("button.main", "Sign in"))),
		h("p.faint", "The key stays in this tab, and is gone when you close it.")));
}

function start() {
	update();
	restoreUploads();
	showView();
}

const open = () => begin().then(start, (error) => showSignIn(trouble(error)));

onState((name) => {
	liveness.className = `live ${name}`;
	const since = () => ["Not live: the service does not answer. Shown as of ", time(new Date().toISOString())];
	show(liveness, { off: "", connecting: "Connecting…", live: "Live" }[name] ?? since());
});

onSessionEnd((reason) => {
	shown.abort();
	update();
	showSignIn(h("p", reason));
});

// The place on a page is kept with its entry in the history, so that back and reload lead to it.
let noting;
history.scrollRestoration = "manual";
addEventListener("scroll", () => {
	clearTimeout(noting);
	noting = setTimeout(() => history.replaceState({ y: Math.round(scrollY) }, ""), 150);
}, { passive: true });
addEventListener("hashchange", () => {
	clearTimeout(noting);
	if (location.hash.startsWith("#code=")) open();
	else showView().then(() => main.focus({ preventScroll: true }));
});

const skip = (event) => (event.preventDefault(), main.focus());
document.body.append(h("a.skip", { href: "#main", onclick: skip }, "Skip to the content"),
	h("header", h("a.brand", { href: "#/" }, "svc"), tabs, liveness, out), main, announcer);
open();
