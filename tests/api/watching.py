"""Every view of a daemon, held against what the model of it predicts."""

from typing import Any

from tests.api.answers import body_of, details_of
from tests.api.daemons import Daemon
from tests.api.models import Model, ModelSource


class Watching:
    """Looks, and changes nothing."""

    daemon: Daemon
    model: Model

    def is_idle(self) -> bool:
        """Whether no task waits or runs."""
        left = "SELECT COUNT(*) FROM tasks WHERE status IN ('queued', 'running')"
        return self.daemon.read(lambda connection: int(connection.execute(left).fetchone()[0])) == 0

    def seen(self) -> dict[str, Any]:
        """The views of the sources that the model has; one that is gone has none."""
        told: dict[str, Any] = {}
        for source in self.model.sources.values():
            answer = self.daemon.ask("GET", f"/v1/sources/{source.id}")
            if answer.status_code == 200:
                shown = answer.json()
                slugs = sorted(self.slugs().get(each, each) for each in shown["bucket_ids"])
                told[source.id] = (shown["status"], shown["ready"], slugs)
        return told

    def slugs(self) -> dict[str, str]:
        answer = self.daemon.ask("GET", "/v1/buckets", params={"include_archived": "true"})
        return {bucket["id"]: bucket["slug"] for bucket in body_of(answer)["buckets"]}

    def look_at_buckets(self) -> None:
        told = {
            bucket["slug"]: bucket
            for bucket in body_of(self.daemon.ask("GET", "/v1/buckets", params={"include_archived": "true"}))["buckets"]
        }
        assert {slug: bucket["status"] for slug, bucket in told.items()} == self.model.buckets
        for slug, bucket in told.items():
            assert bucket["counts"] == self.model.counts(slug)
            assert (set(bucket["knowledgeIds"]), bucket["memberCount"]) == (
                self.model.listed(slug),
                len(self.model.listed(slug)),
            )
            assert set(self.daemon.members(slug)) == self.model.listed(slug)
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
        answer = self.daemon.ask("POST", "/v1/responses", json=body)
        if not expected and answer.status_code == 409:
            assert answer.json()["error"]["code"] == "bucket_store_indexing_pending"
            return
        told = body_of(answer)
        cited = {source["source_id"] for source in told["sources"]}
        assert told["grounded"] is bool(cited)
        assert cited <= expected
        if asked.type == "file" and asked.id in expected:
            assert asked.id in cited
        text = told["output"][0]["content"][0]["text"]
        hidden = [source.word for source in self.model.sources.values() if source.word and source.id not in expected]
        assert [word for word in hidden if word in text] == []

    def look_for_the_deleted(self) -> None:
        for source in self.model.sources.values():
            if source.is_deleted:
                details = details_of(self.daemon.ask("GET", f"/v1/sources/{source.id}"), "source_not_found")
                assert details.get("replaced_by") == self.model.successor(source)

    def find_everywhere(self) -> None:
        """A search of each bucket finds what is listed there and can be found, and nothing else."""
        for slug in self.model.usable():
            answer = self.daemon.search("quay", buckets=[slug], max_num_results=50)
            if expected := self.model.found(slug):
                hits = body_of(answer)["data"]
                assert {hit["source_id"] for hit in hits} == expected
                assert {(hit["source_id"], hit["title"]) for hit in hits} == {
                    (name, self.model.sources[name].title) for name in expected
                }
            else:
                details_of(answer, "bucket_store_indexing_pending")
        for source in self.newest():
            assert self.daemon.found(source.word) == [source.id]
        if everything := self.model.found(*self.model.usable()):
            assert set(self.daemon.found("quay", max_num_results=50)) == everything
