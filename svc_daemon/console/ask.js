// The view of a question: its answer, the numbered quotes, and the clicked one in its place.

import {at, attempt, badge, button, frame, h, listed, place, put, said, sent, show} from "./dom.js";
import {bucketChips, split} from "./search.js";
import {get, post, readEvents, send} from "./session.js";
import {passages, placeOf} from "./source.js";

const PLACE = "svc.answer";

export async function showAsk({main, signal, query, set, title}) {
	title("Ask");
	const {form, field, chips, text, verdict, quotes, related, side} = frame(main, "ask");
	field.value = query.q || "";

	const open = ({source_id: id, title: name, location}) => attempt(side, async () => {
		const {char_start: from, char_end: end} = location;
		side.hidden = false;
		show(side, said(name, "h2"), h("p.faint", place(location)), h("a", {href: placeOf(id, location, [[0, end - from]])}, "Open the whole text"),
			passages(await get(at`sources/${id}/text`, {}, signal), [from, end], [[from, end]], 12));
		side.querySelector("mark")?.scrollIntoView({block: "nearest"});
		side.focus({preventScroll: true});
	});

	const quote = (source, label, state) => h("li", h("p", button(label, () => open(source), ".quiet"), " ", state),
		h("p.faint", place(source.location)), h("blockquote", {dir: "auto"}, source.quote));

	// Show an answer with its marks, such as [1], as buttons, and which quotes are proven.
	function finish(answer) {
		const {grounded, sources, unmatched, warnings} = answer;
		show(text, answer.text.split(/(\[\d+\])/).map(piece => {
			const source = sources.find(each => `[${each.number}]` === piece);
			return source ? button(piece, () => open(source), ".cite", {"aria-label": `Quote ${source.number}: ${source.title}`}) : piece;
		}));
		show(verdict, badge(grounded ? ["every sentence is supported", "ok"] : [sources.length ? "not every sentence is supported" : "the sources don't answer this", "bad"]),
			unmatched.length > 0 && h("p.warn", "The answer lacks: ", said(listed(...unmatched))), warnings.map(each => said(each, "p.warn")));
		const states = sources.map(() => h("span.state.wait", "being checked"));
		show(quotes, sources.map((each, index) => quote(each, `[${each.number}] ${each.title}`, states[index])));
		show(related, answer.related.length > 0 && [h("h2", "Related, but no answer"), h("ul.hits", answer.related.map(each => quote(each, each.title)))]);
		if (sources.length) prove(answer, states).catch(() => states.forEach(each => put(each, "not checked")));
	}

	// The service compares each quote with the stored bytes, and with the sentences that cite it.
	async function prove({text, sources}, states) {
		const {data} = await post(at`citations/verify`, {text, question: query.q, sources}, signal);
		for (const [index, {proven, reason, result, changes}] of data.entries()) {
			const isOk = proven && result !== "changed";
			show(states[index], isOk ? "proven" : `not proven: ${proven ? `the answer changes ${listed(...changes)}` : reason}`);
			states[index].className = `state ${isOk ? "ok" : "bad"}`;
			states[index].title = reason;
		}
	}

	const run = () => attempt(text, async () => {
		side.hidden = true;
		[verdict, quotes, related].forEach(each => show(each));
		show(text, h("p.faint", "Looking for an answer…"));
		let written = "", answer;
		const body = {model: "svc-agent", input: query.q, stream: true, ...(query.b && {buckets: split(query.b)})};
		await readEvents(await send("POST", at`responses`, {body, signal}), (id, event) => {
			if (event?.type === "response.output_text.delta") put(text, (written += event.delta));
			if (event?.type === "error") throw new Error(event.message);
			if (/^response\.(completed|incomplete)$/.test(event?.type)) answer = event.response;
		});
		if (!answer) throw new Error("The answer was cut off. Ask again.");
		answer.text = answer.output[0].content[0].text;
		finish(answer);
		try {
			sessionStorage.setItem(PLACE, JSON.stringify([query.q, query.b, answer]));
		} catch {}
	});

	const drawChips = async () => show(chips, await bucketChips(query.b, b => (set({b}), drawChips()), signal));
	const submit = () => (set({q: field.value.trim()}), query.q && run());
	form.onsubmit = sent(submit);
	field.onkeydown = event => {
		if (event.key === "Enter" && !event.shiftKey && !event.isComposing) form.onsubmit(event);
	};
	const [question, buckets, answer] = JSON.parse(sessionStorage.getItem(PLACE) || "[]");
	if (answer && question === query.q && (buckets || "") === (query.b || "")) finish(answer);
	else if (!query.q) field.focus();
	await drawChips();
}
