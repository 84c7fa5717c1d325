"""What the service must hold after some calls, as plain records, and every view of a daemon held against them."""

from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon

QUEUED, ACTIVE, FAILED = "queued", "active", "failed"
FOUND = ("file", "page")


@dataclass(slots=True)
class ModelSource:
    """A source, and in which buckets it is synced."""

    id: str
    type: str
    #: In its text and in no other's; empty for one without text.
    word: str
    #: Slug to whether the membership is active.
    places: dict[str, bool]
    title: str
    status: str = QUEUED
    #: Path on the site that it came from.
    path: str | None = None
    is_deleted: bool = False
    replaced_by: str | None = None

    @property
    def ready(self) -> bool:
        return self.status == ACTIVE and bool(self.places) and all(self.places.values())

    def is_listed(self, slug: str) -> bool:
        return self.status == ACTIVE and self.places.get(slug, False)

    def settle(self) -> None:
        """What the workers make of it."""
        self.status = ACTIVE if self.word else FAILED
        self.places = dict.fromkeys(self.places, self.status == ACTIVE)

    def requeue(self) -> None:
        self.status = QUEUED
        self.places = dict.fromkeys(self.places, False)


@dataclass(slots=True)
class Model:
    """Buckets by slug with their status, and every source that ever was, in order."""

    buckets: dict[str, str] = field(default_factory=dict)
    sources: dict[str, ModelSource] = field(default_factory=dict)
    #: Named agents, and the slugs of the buckets that each searches.
    agents: dict[str, set[str]] = field(default_factory=dict)

    def usable(self) -> list[str]:
        """Slugs of buckets that take and find something."""
        return [slug for slug, status in self.buckets.items() if status == ACTIVE]

    def alive(self) -> list[ModelSource]:
        return [source for source in self.sources.values() if not source.is_deleted]

    def members(self, slug: str) -> list[ModelSource]:
        return [source for source in self.alive() if slug in source.places]

    def listed(self, slug: str) -> set[str]:
        return {source.id for source in self.members(slug) if source.is_listed(slug)}

    def found(self, *slugs: str) -> set[str]:
        """What a search of these buckets can find."""
        return {
            source.id
            for source in self.alive()
            if source.type in FOUND and any(source.is_listed(slug) for slug in slugs if self.buckets[slug] == ACTIVE)
        }

    def reached(self, agent_id: str) -> set[str]:
        """What an agent can find; the default one looks everywhere."""
        return self.found(*(self.agents[agent_id] if agent_id in self.agents else self.usable()))

    def counts(self, slug: str) -> dict[str, int]:
        types = [source.type for source in self.members(slug)]
        retrievable = sum(source.is_listed(slug) and source.type in FOUND for source in self.members(slug))
        kinds = {"file": types.count("file"), "website": types.count("page"), "qa": types.count("qa"), "intents": 0}
        return {"total": len(types), **kinds, "retrievable": retrievable}

    def views(self) -> dict[str, Any]:
        """Status, readiness and buckets of every source that is there."""
        return {source.id: (source.status, source.ready, sorted(source.places)) for source in self.alive()}

    def settle(self) -> None:
        for source in self.alive():
            source.settle()

    def delete_bucket(self, slug: str) -> None:
        for source in self.members(slug):
            del source.places[slug]
            source.is_deleted = not source.places
        for slugs in self.agents.values():
            slugs.discard(slug)
        del self.buckets[slug]

    def successor(self, source: ModelSource) -> str | None:
        """The source that has the place of a replaced one now, if one does."""
        while source.is_deleted and source.replaced_by is not None:
            source = self.sources[source.replaced_by]
        return None if source.is_deleted else source.id

    def replace(self, old: ModelSource, new: ModelSource, slug: str) -> None:
        """The new one has become ready and takes the old one's place in the bucket."""
        del old.places[slug]
        if not old.places:
            old.is_deleted, old.replaced_by = True, new.id


class Watching:
    """Looks, and changes nothing."""

    daemon: Daemon
    model: Model

    def is_idle(self) -> bool:
        """Whether no task waits or runs."""
        return self.daemon.count("tasks WHERE status IN ('queued', 'running')") == 0

    def sources(self) -> dict[str, httpx.Response]:
        """What a GET of each source returns that ever was."""
        asks = [self.daemon.asking("GET", f"/v1/sources/{each}") for each in self.model.sources]
        return dict(zip(self.model.sources, self.daemon.ask_together(*asks), strict=True))

    def buckets(self) -> list[dict[str, Any]]:
        return list(self.daemon.show("/v1/buckets", include_archived="true")["buckets"])

    def seen(self, sources: dict[str, httpx.Response]) -> dict[str, Any]:
        """Status, readiness and buckets of the sources that are there, as the model has them."""
        slugs = {bucket["id"]: bucket["slug"] for bucket in self.buckets()}
        shown = {name: answer.json() for name, answer in sources.items() if answer.status_code == 200}
        return {
            name: (source["status"], source["ready"], sorted(slugs.get(each, each) for each in source["bucket_ids"]))
            for name, source in shown.items()
        }

    def has_settled(self) -> bool:
        """Whether the workers have done all there was to do, as the model has it."""
        return self.is_idle() and self.seen(self.sources()) == self.model.views() and self.is_idle()

    def look_at_sources(self) -> None:
        sources = self.sources()
        assert self.seen(sources) == self.model.views()
        for source in self.model.sources.values():
            if source.is_deleted:
                details = details_of(sources[source.id], "source_not_found")
                assert details.get("replaced_by") == self.model.successor(source)

    def look_at_buckets(self) -> None:
        buckets = {bucket["slug"]: bucket for bucket in self.buckets()}
        assert {slug: bucket["status"] for slug, bucket in buckets.items()} == self.model.buckets
        for slug, bucket in buckets.items():
            listed = self.model.listed(slug)
            assert bucket["counts"] == self.model.counts(slug)
            assert (set(bucket["knowledgeIds"]), bucket["memberCount"]) == (listed, len(listed))
            assert set(self.daemon.members(slug)) == listed
            assert set(self.daemon.members(slug, status="all")) == {each.id for each in self.model.members(slug)}

    def newest(self) -> list[ModelSource]:
        """The one that came last of those that can be found; its own word must find it alone."""
        everything = self.model.found(*self.model.usable())
        return [source for source in self.model.alive() if source.id in everything][-1:]

    def ask(self, agent_id: str, asked: ModelSource) -> None:
        """An answer rests on what the agent reaches, on nothing else, and on what was asked about where it can."""
        expected = self.model.reached(agent_id)
        model = "svc-agent" if agent_id == "default" else f"svc-agent:{agent_id}"
        body = {"model": model, "input": f"Where is the {asked.word} quay?"}
        response = self.daemon.ask("POST", "/v1/responses", json=body)
        if not expected and response.status_code == 409:
            assert response.json()["error"]["code"] == "bucket_store_indexing_pending"
            return
        answer = body_of(response)
        cited = {source["source_id"] for source in answer["sources"]}
        assert answer["grounded"] is bool(cited)
        assert cited <= expected
        assert asked.type != "file" or asked.id not in expected or asked.id in cited
        text = answer["output"][0]["content"][0]["text"]
        hidden = [source.word for source in self.model.sources.values() if source.word and source.id not in expected]
        assert [word for word in hidden if word in text] == []

    def find_everywhere(self) -> None:
        """A search of each bucket finds what is listed there and can be found, and nothing else."""
        for slug in self.model.usable():
            answer = self.daemon.search("quay", buckets=[slug], max_num_results=50)
            if expected := self.model.found(slug):
                hits = {(hit["source_id"], hit["title"]) for hit in body_of(answer)["data"]}
                assert hits == {(name, self.model.sources[name].title) for name in expected}
            else:
                details_of(answer, "bucket_store_indexing_pending")
        for source in self.newest():
            assert self.daemon.found(source.word) == [source.id]
        if everything := self.model.found(*self.model.usable()):
            assert set(self.daemon.found("quay", max_num_results=50)) == everything
