// The frame of the console: signing in, and the view of the address.

import {showAsk} from "./ask.js";
import {showBucket} from "./bucket.js";
import {showBuckets} from "./buckets.js";
import {attempt, button, element, frame, h, put, search, sent, show, time, trouble} from "./dom.js";
import {onEvent, onState, reading, update} from "./live.js";
import {showSearch} from "./search.js";
import {begin, onSessionEnd, session, signOut, take} from "./session.js";
import {showSource} from "./source.js";
import {restoreUploads} from "./uploads.js";

// Views by the first part of the address, such as `#/b/docs?status=failed`.
const VIEWS = {"": showBuckets, b: showBucket, s: showSource, search: showSearch, ask: showAsk};
const [main, tabs, liveness, out, announcer, skip] = ["main", "tabs", "live", "out", "announcer", "skip"].map(element);
let shown = new AbortController();

function title(text) {
	document.title = `${text} · svc`;
}

async function showView() {
	shown.abort();
	if (!session()) return showSignIn();
	shown = new AbortController();
	const {signal} = shown;
	const [, where, asked] = /^#?\/?([^?]*)\??(.*)/.exec(location.hash);
	const query = Object.fromEntries(new URLSearchParams(asked));
	// A view that is left has no place.
	const set = change => signal.aborted || history.replaceState(history.state, "", `#/${where}${search(Object.assign(query, change))}`);
	const top = history.state?.y || 0;
	out.hidden = tabs.hidden = false;
	show(main);
	scrollTo(0, 0);
	try {
		const [name, ...rest] = where.split("/").map(decodeURIComponent);
		const tab = `#/${/^[bs]$/.test(name) ? "" : name}`;
		for (const each of tabs.children) each.ariaCurrent = each.hash === tab ? "page" : null;
		await reading((Object.hasOwn(VIEWS, name) ? VIEWS[name] : showBuckets)({main, signal, rest, query, set, title, isBack: top > 0}));
		if (top && !signal.aborted) scrollTo(0, top);
		put(announcer, document.title);
	} catch (error) {
		if (signal.aborted) return;
		title(error.message);
		show(main, trouble(error), button("Try again", showView));
		// The view comes with the service.
		onEvent(signal, event => event || showView());
	}
}

function showSignIn(...reason) {
	title("Sign in");
	out.hidden = tabs.hidden = true;
	const {form, field, outcome} = frame(main, "sign-in");
	form.onsubmit = sent(() => attempt(outcome, () => take(field.value.trim()).then(start)));
	show(outcome, reason);
}

function start() {
	update();
	restoreUploads();
	showView();
}

const open = () => begin().then(start, error => showSignIn(trouble(error)));

onState(name => {
	liveness.className = `pulse ${name}`;
	const lost = ["Not live: the service does not answer. Shown as of ", time(new Date().toISOString())];
	show(liveness, {off: "", connecting: "Connecting…", live: "Live"}[name] ?? lost);
});

onSessionEnd(reason => {
	shown.abort();
	update();
	showSignIn(h("p", reason));
});

// The place on a page is kept with its entry in the history.
let noting;
history.scrollRestoration = "manual";
addEventListener("scroll", () => {
	clearTimeout(noting);
	noting = setTimeout(() => history.replaceState({y: Math.round(scrollY)}, ""), 150);
}, {passive: true});
addEventListener("hashchange", () => {
	clearTimeout(noting);
	if (location.hash.startsWith("#code=")) open();
	else showView().then(() => main.focus({preventScroll: true}));
});

skip.onclick = sent(() => main.focus());
out.onclick = signOut;
open();
