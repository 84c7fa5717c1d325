"""Every view of a daemon, held against what the model of it predicts."""

from typing import Any

import httpx

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.models import Model, ModelSource


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
