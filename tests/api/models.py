"""What the service must hold after some calls: plain records, and what they predict of every view."""

from dataclasses import dataclass, field
from typing import Any

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
