"""A stateful test: after calls in any order, every view of the service is what a model of it predicts.

Workers run only in the rule `work`, so that between the rules nothing moves and each view can be predicted exactly.
The state runs each piece of work twice, as an engine with several writers may have to.
The runs are the same ones each time; `--large` makes more and longer ones.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from svc_daemon.extract.extractors import Extractor
from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.loops import Loop
from tests.api.models import ACTIVE, FAILED, Model, ModelSource, Watching
from tests.api.rehearsals import RehearsingDaemon
from tests.api.sessions import ask_finalize, ask_session, batch_status, open_batch, outcomes, part_kept, put, put_part
from tests.api.sites import PAGE, Site, hosting

RUNS, STEPS = 10, 30
MANY_RUNS, MANY_STEPS = 150, 60

SLUGS = ("alpha", "beta", "gamma")
AGENTS = ("north", "south")
#: Picks one of the existing buckets, sources or agents.
PICK = st.integers(0, 999)
#: Whether the workers finish all tasks before the step.
WORK = st.booleans()
FORCE = {"force": "true"}


def text_of(word: str) -> bytes:
    return f"# Notes\n\nThe {word} quay was built of grey stone.\n".encode() if word else b" \n"


def when(condition: Callable[[Any], bool], **picks: Any) -> Callable[[Any], Any]:
    """Return a decorator for a rule that runs only while the condition is true."""
    as_rule: Any = rule
    return lambda method: precondition(condition)(as_rule(**picks)(method))


class Machine(Watching, RuleBasedStateMachine):
    """A state machine whose rules call a daemon and update the model of it."""

    make_daemon: Callable[[], Daemon]
    site: Site
    numbers = count(1)

    @initialize()
    def open(self) -> None:
        self.daemon = type(self).make_daemon()
        self.model = Model()
        #: Requests with an idempotency key: bucket, options and the id of the source that they created.
        self.keyed: list[tuple[str, dict[str, Any], str]] = []

    def teardown(self) -> None:
        if hasattr(self, "daemon"):
            self.daemon.close()

    # Picking from the model and adding to it.

    def new_word(self) -> str:
        return f"zq{next(self.numbers)}x"

    def bucket(self, pick: int) -> str:
        usable = self.model.usable()
        return usable[pick % len(usable)]

    def source(self, pick: int) -> ModelSource:
        alive = self.model.alive()
        return alive[pick % len(alive)]

    def agent(self, pick: int) -> str:
        return list(self.model.agents)[pick % len(self.model.agents)]

    def note(self, made: dict[str, Any], word: str, slug: str, path: str | None = None) -> ModelSource:
        source = ModelSource(made["id"], made["type"], word, {slug: False}, made["title"], path=path)
        assert source.id not in self.model.sources
        self.model.sources[source.id] = source
        return source

    def has_bucket(self) -> bool:
        return bool(self.model.usable())

    def has_source(self) -> bool:
        return bool(self.model.alive()) and self.has_bucket()

    # Buckets.

    @rule(slug=st.sampled_from(SLUGS))
    def put_bucket(self, slug: str) -> None:
        answer = self.daemon.ask("PUT", f"/v1/buckets/{slug}")
        now = self.model.buckets.setdefault(slug, ACTIVE if answer.status_code == 201 else "missing")
        if now == ACTIVE:
            assert body_of(answer, answer.status_code)["created"] is (answer.status_code == 201)
        else:
            assert details_of(answer, "bucket_slug_exists")["status"] == now

    @when(lambda self: bool(self.model.buckets), pick=PICK, first=WORK)
    def turn_archive(self, pick: int, first: bool) -> None:
        self.work_if(first)
        slug = list(self.model.buckets)[pick % len(self.model.buckets)]
        status = "archived" if self.model.buckets[slug] == ACTIVE else ACTIVE
        assert body_of(self.daemon.ask("PATCH", f"/v1/buckets/{slug}", json={"status": status}))["status"] == status
        self.model.buckets[slug] = status

    @when(has_bucket, pick=PICK, first=WORK)
    def delete_bucket(self, pick: int, first: bool) -> None:
        self.work_if(first)
        slug = self.bucket(pick)
        path = f"/v1/buckets/{slug}"
        details_of(self.daemon.ask("DELETE", path), "force_required")
        total = len(self.model.members(slug))
        made = body_of(self.daemon.ask("DELETE", path, params=FORCE))
        assert made["deletion"]["total"] == total
        details_of(self.daemon.ask("DELETE", path, params=FORCE), "delete_in_progress")
        details_of(self.daemon.search("quay", buckets=[slug]), "bucket_not_found")
        self.model.delete_bucket(slug)
        self.find_everywhere()
        self.work()
        details_of(self.daemon.ask("DELETE", path, params=FORCE), "bucket_not_found")

    # Creating sources.

    @when(has_bucket, pick=PICK, has_text=st.sampled_from([True, True, True, False]), keyed=st.booleans())
    def upload(self, pick: int, has_text: bool, keyed: bool) -> None:
        slug, word = self.bucket(pick), self.new_word() if has_text else ""
        options: dict[str, Any] = {"files": {"file": ("notes.txt", text_of(word))}}
        options |= {"headers": {"Idempotency-Key": self.new_word()}} if keyed else {}
        made = self.daemon.post(f"/v1/buckets/{slug}/files", 201, **options)
        self.note(made, word, slug)
        if keyed:
            self.keyed.append((slug, options, made["id"]))

    @when(has_bucket, pick=PICK)
    def upload_after_a_refusal_under_the_same_key(self, pick: int) -> None:
        slug, word, key = self.bucket(pick), self.new_word(), self.new_word()
        details_of(self.daemon.upload(b"", bucket=slug, repeat_key=key), "empty_file")
        made = body_of(self.daemon.upload(text_of(word), bucket=slug, repeat_key=key), 201)
        self.note(made, word, slug)

    @when(has_bucket, pick=PICK, cut=st.integers(0, 30))
    def upload_in_parts(self, pick: int, cut: int) -> None:
        slug, word = self.bucket(pick), self.new_word()
        data = text_of(word)
        session = body_of(ask_session(self.daemon, data, bucket=slug), 201)
        assert part_kept(put_part(self.daemon, session, data, 0, cut)) == f"bytes=0-{cut}"
        path = f"/v1/buckets/{slug}/uploads/{session['session_id']}/finalize"
        assert details_of(self.daemon.ask("POST", path), "blob_not_uploaded")["received_bytes"] == cut + 1
        body_of(put_part(self.daemon, session, data, cut // 2, len(data) - 1))
        made = self.daemon.post(path, 201)
        again = self.daemon.ask("POST", path)
        assert (body_of(again)["id"], again.headers["Idempotent-Replayed"]) == (made["id"], "true")
        self.note(made, word, slug)

    @when(has_bucket, pick=PICK, arrived=st.integers(1, 3))
    def upload_a_batch(self, pick: int, arrived: int) -> None:
        slug = self.bucket(pick)
        words = {f"file{number}": self.new_word() for number in range(3)}
        files = [(name, text_of(word)) for name, word in words.items()]
        batch = open_batch(self.daemon, files, bucket=slug)
        for name, data in files[:arrived]:
            body_of(put(self.daemon, batch["by_id"][name], data))
        made = body_of(ask_finalize(self.daemon, batch, bucket=slug))
        for item in made["finalized"]:
            self.note(self.daemon.source(item["knowledge_id"]), words[item["client_file_id"]], slug)
        expected = {name: "finalized" if number < arrived else "pending" for number, name in enumerate(words)}
        assert outcomes(made) == expected
        body_of(ask_finalize(self.daemon, batch, bucket=slug, json={"mode": "abandon_pending"}))
        status = batch_status(self.daemon, batch)
        assert (status["terminal"], status["counters"]["queued"], status["counters"]["total"]) == (False, arrived, 3)

    @when(has_bucket, pick=PICK)
    def ask_and_answer(self, pick: int) -> None:
        slug, word = self.bucket(pick), self.new_word()
        body = {"question": f"Where is the {word} quay?", "answer": "At the river."}
        self.note(self.daemon.post(f"/v1/buckets/{slug}/qa", 201, json=body), word, slug)

    @when(has_bucket, pick=PICK)
    def import_file(self, pick: int) -> None:
        slug, word = self.bucket(pick), self.new_word()
        url = self.site.put(f"/{word}.md", text_of(word), "text/markdown")
        made = self.daemon.ask("POST", f"/v1/buckets/{slug}/files/import", json={"url": url})
        self.note(body_of(made, 201), word, slug, f"/{word}.md")

    @when(has_bucket, pick=PICK)
    def add_page(self, pick: int) -> None:
        slug, word = self.bucket(pick), self.new_word()
        url = self.site.put(f"/{word}", PAGE.replace(b"ochre", word.encode()))
        path = f"/v1/buckets/{slug}/pages"
        made = self.daemon.post(path, 201, json={"url": url})
        self.note(made, word, slug)
        again = self.daemon.ask("POST", path, json={"url": url})
        assert details_of(again, "website_url_exists")["source_id"] == made["id"]

    @when(lambda self: bool(self.keyed), pick=PICK)
    def repeat(self, pick: int) -> None:
        """Repeat an upload with its idempotency key, even if its source has changed since."""
        slug, options, source_id = self.keyed[pick % len(self.keyed)]
        answer = self.daemon.ask("POST", f"/v1/buckets/{slug}/files", **options)
        other = {**options, "files": {"file": ("other.txt", b"Other bytes.")}}
        if self.model.buckets.get(slug) != ACTIVE:
            details_of(answer, "bucket_not_found")
        elif answer.is_success:
            assert (body_of(answer)["id"], answer.headers["Idempotent-Replayed"]) == (source_id, "true")
            details_of(self.daemon.ask("POST", f"/v1/buckets/{slug}/files", **other), "idempotency_key_conflict")
        else:
            # The slug now belongs to another bucket.
            details_of(answer, "idempotency_key_conflict")
            assert self.model.sources[source_id].is_deleted or slug not in self.model.sources[source_id].places

    # Changing sources.

    @when(has_source, pick=PICK, first=WORK)
    def describe(self, pick: int, first: bool) -> None:
        self.work_if(first)
        source, title = self.source(pick), self.new_word()
        made = body_of(self.daemon.ask("PATCH", f"/v1/sources/{source.id}", json={"title": title}))
        source.title = made["title"]
        assert source.title == title

    @when(has_source, pick=PICK, into=PICK, first=WORK)
    def attach(self, pick: int, into: int, first: bool) -> None:
        self.work_if(first)
        source, slug = self.source(pick), self.bucket(into)
        self.daemon.post(f"/v1/buckets/{slug}/sources", json={"source_id": source.id})
        source.places.setdefault(slug, False)

    @when(has_source, pick=PICK, out=PICK, first=WORK)
    def detach(self, pick: int, out: int, first: bool) -> None:
        self.work_if(first)
        source, slug = self.source(pick), self.bucket(out)
        answer = self.daemon.ask("DELETE", f"/v1/buckets/{slug}/sources/{source.id}")
        if slug in source.places:
            del source.places[slug]
            assert len(body_of(answer)["bucket_ids"]) == len(source.places)
        else:
            details_of(answer, "source_not_found")

    @when(has_source, pick=PICK, first=WORK)
    def delete(self, pick: int, first: bool) -> None:
        self.work_if(first)
        source = self.source(pick)
        assert body_of(self.daemon.ask("DELETE", f"/v1/sources/{source.id}"))["deleted"] is True
        source.is_deleted = True

    @when(has_source, pick=PICK)
    def retry(self, pick: int) -> None:
        source = self.source(pick)
        answer = self.daemon.ask("POST", f"/v1/sources/{source.id}/retry")
        if source.status == FAILED:
            assert body_of(answer)["status"] == "queued"
            source.requeue()
        else:
            details_of(answer, "invalid_request")

    @when(has_source, pick=PICK, is_new=st.booleans(), first=WORK)
    def refresh(self, pick: int, is_new: bool, first: bool) -> None:
        self.work_if(first)
        source = self.source(pick)
        if source.path is None or source.status == "queued":
            answer = self.daemon.ask("POST", f"/v1/sources/{source.id}/refresh")
            assert answer.status_code in (200, 400, 409)
            assert source.path is None or details_of(answer, "request_in_progress")
            return
        word = self.new_word() if is_new else source.word
        self.site.put(source.path, text_of(word), "text/markdown")
        answer = self.daemon.ask("POST", f"/v1/sources/{source.id}/refresh")
        assert body_of(answer, 202 if is_new else 200)["changed"] is is_new
        if is_new:
            source.word = word
            if source.status == FAILED:
                source.requeue()

    @when(has_source, pick=PICK, into=PICK)
    def replace(self, pick: int, into: int) -> None:
        source, slug, word = self.source(pick), self.bucket(into), self.new_word()
        answer = self.daemon.upload(text_of(word), bucket=slug, replaces=source.id)
        if slug not in source.places:
            details_of(answer, "source_not_found")
            return
        new = self.note(body_of(answer, 201), word, slug)
        self.look()
        self.settle(lambda: self.model.replace(source, new, slug))

    # Agents.

    @when(has_bucket, agent_id=st.sampled_from(AGENTS), pick=PICK)
    def make_agent(self, agent_id: str, pick: int) -> None:
        slug = self.bucket(pick)
        body = {"agent_id": agent_id, "policy": {"bucket_ids": [slug]}}
        answer = self.daemon.ask("POST", "/v1/agents", json=body)
        if agent_id in self.model.agents:
            details_of(answer, "agent_exists")
        else:
            body_of(answer, 201)
            self.model.agents[agent_id] = {slug}

    @when(lambda self: bool(self.model.agents) and self.has_bucket(), pick=PICK, into=PICK)
    def change_agent(self, pick: int, into: int) -> None:
        agent_id, slug = self.agent(pick), self.bucket(into)
        path = f"/v1/agents/{agent_id}"
        known = self.daemon.show(path)["policy"]["bucket_ids"]
        body_of(self.daemon.ask("PUT", path, json={"policy": {"bucket_ids": [*known, slug]}}))
        self.model.agents[agent_id].add(slug)

    @when(lambda self: bool(self.model.agents), pick=PICK)
    def delete_agent(self, pick: int) -> None:
        agent_id = self.agent(pick)
        body_of(self.daemon.ask("DELETE", f"/v1/agents/{agent_id}"))
        details_of(self.daemon.search("quay", agent=f"svc-agent:{agent_id}"), "agent_not_found")
        del self.model.agents[agent_id]

    @when(has_source, agent_id=st.sampled_from(("default", *AGENTS)), pick=PICK, first=WORK)
    def ask_an_agent(self, agent_id: str, pick: int, first: bool) -> None:
        self.work_if(first)
        known = agent_id in self.model.agents
        self.ask(agent_id if known else "default", self.source(pick))

    # Running the workers.

    @rule()
    def work(self) -> None:
        self.settle(lambda: None)

    def work_if(self, asked: bool) -> None:
        if asked:
            self.work()

    def settle(self, then: Callable[[], None]) -> None:
        """Update the model as if all tasks were done, then run the workers until all tasks are done."""
        self.model.settle()
        then()
        self.daemon.start()
        self.daemon.wait(self.has_settled, "the workers have finished all tasks")
        self.daemon.stop()

    # Invariants.

    @invariant()
    def look(self) -> None:
        if hasattr(self, "daemon"):
            self.look_at_sources()
            self.look_at_buckets()
            self.find_everywhere()


@pytest.mark.rule(
    "service.buckets",
    "service.ready",
    "bucket.counts",
    "source.ready",
    "batch.outcomes",
    "indexing.reported",
    "deletion.gone",
    "rule7.refused",
    "error.source-id",
)
def test_every_view_of_the_service_is_what_the_model_predicts(
    loop: Loop, extractor: Extractor, tmp_path: Path, large: bool
) -> None:
    folders = (tmp_path / str(number) for number in count())
    steady = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    runs, steps = (MANY_RUNS, MANY_STEPS) if large else (RUNS, STEPS)
    phases = [Phase.generate, Phase.shrink] if large else [Phase.generate]
    chosen = settings(steady, max_examples=runs, stateful_step_count=steps, phases=phases)
    with hosting() as site:
        fields = {"make_daemon": staticmethod(lambda: RehearsingDaemon(loop, next(folders), extractor)), "site": site}
        run_machine(type("Machine", (Machine,), fields), settings=chosen)
