"""Vectors that an import sends (offers) before the files that they belong to.

- An offer identifies its passage by the SHA-256 of the text, so it can be sent before the passage has an id.
- `passages` counts the passages with this text that still lack their vector. At 0, the offer is deleted.
- Unused offers are deleted after a day. If an offer is missing, the embedding worker computes the vector.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from svc_daemon.core import readiness
from svc_daemon.databases.contract import Connection


@dataclass(frozen=True, slots=True)
class VectorOffer:
    """A vector that an import sends for all passages with the same text."""

    #: Hexadecimal SHA-256 of the embedded text.
    text_sha256: str
    #: The vector in base64.
    vector: str


class PassageText(NamedTuple):
    """Identifies the text of a source's passage, as it is embedded."""

    source_id: str
    generation: int
    #: Hexadecimal SHA-256 of the text.
    text_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferScope:
    """The bucket whose sources the vectors are for, and the model that computed them."""

    team_id: str
    bucket_id: str
    model: str


def create_offers(
    connection: Connection, scope: OfferScope, offers: Sequence[VectorOffer], offered_at: str, most: int
) -> int:
    """Store vectors that an import has sent, until the team has `most` offers. Returns how many were stored.

    If an offer for the same text is already stored, its vector is replaced and its number of passages increases by one.
    """
    (count,) = connection.execute(
        "SELECT COUNT(*) FROM vector_offers WHERE team_id = :team_id", {"team_id": scope.team_id}
    ).fetchone()
    kept = offers[: max(0, most - count)]
    connection.executemany(
        "INSERT INTO vector_offers (team_id, text_sha256, bucket_id, model, vector, passages, offered_at)"
        " VALUES (:team_id, :text_sha256, :bucket_id, :model, :vector, 1, :offered_at)"
        " ON CONFLICT (team_id, text_sha256, bucket_id)"
        " DO UPDATE SET model = excluded.model, vector = excluded.vector, offered_at = excluded.offered_at,"
        " passages = vector_offers.passages + 1",
        [
            {
                "team_id": scope.team_id,
                "text_sha256": offer.text_sha256,
                "bucket_id": scope.bucket_id,
                "model": scope.model,
                "vector": offer.vector,
                "offered_at": offered_at,
            }
            for offer in kept
        ],
    )
    return len(kept)


def find_offers(
    connection: Connection, team_id: str, model: str, passages: Sequence[PassageText]
) -> dict[PassageText, str]:
    """Find the vectors of this model that an import has sent for these passages.

    Passages of sources in several buckets are left out, because the API key that sent the vector may have access to
    only one of the buckets.
    """
    rows = connection.execute(
        "SELECT m.source_id, o.text_sha256, o.vector FROM vector_offers o"
        " JOIN memberships m ON m.bucket_id = o.bucket_id"
        " WHERE o.team_id = :team_id AND o.model = :model"
        " AND o.text_sha256 IN (SELECT value FROM json_each(:hashes))"
        " AND m.source_id IN (SELECT value FROM json_each(:source_ids))"
        " AND NOT EXISTS (SELECT 1 FROM memberships x WHERE x.source_id = m.source_id AND x.bucket_id <> m.bucket_id)",
        {
            "team_id": team_id,
            "model": model,
            "hashes": json.dumps(sorted({each.text_sha256 for each in passages})),
            "source_ids": json.dumps(sorted({each.source_id for each in passages})),
        },
    )
    found = {(row["source_id"], row["text_sha256"]): row["vector"] for row in rows}
    return {each: found[key] for each in passages if (key := (each.source_id, each.text_sha256)) in found}


def finish_offers(connection: Connection, team_id: str, passages: Sequence[PassageText]) -> list[PassageText]:
    """Record that these passages have their vectors, and delete the offered vectors that no other passage needs.

    Returns the passages whose sources are still being indexed. Their offered vectors are kept: after a crash of the
    daemon, such a source is indexed again, and needs them again.
    """
    rows = connection.execute(
        "SELECT id, generation, status FROM sources WHERE team_id = :team_id"
        " AND id IN (SELECT value FROM json_each(:source_ids))",
        {"team_id": team_id, "source_ids": json.dumps(sorted({each.source_id for each in passages}))},
    )
    states = {(row["id"], row["generation"]): row["status"] for row in rows}
    by_state = {each: states.get((each.source_id, each.generation)) for each in passages}
    connection.executemany(
        "UPDATE vector_offers SET passages = passages - 1 WHERE team_id = :team_id AND text_sha256 = :text_sha256"
        " AND bucket_id IN (SELECT bucket_id FROM memberships WHERE source_id = :source_id)",
        [
            {"team_id": team_id, "source_id": each.source_id, "text_sha256": each.text_sha256}
            for each in sorted(passages)
            if by_state[each] == readiness.ACTIVE
        ],
    )
    connection.execute(
        "DELETE FROM vector_offers WHERE team_id = :team_id AND passages <= 0"
        " AND text_sha256 IN (SELECT value FROM json_each(:hashes))",
        {"team_id": team_id, "hashes": json.dumps(sorted({each.text_sha256 for each in passages}))},
    )
    return [each for each in passages if by_state[each] in (readiness.QUEUED, readiness.INDEXING)]


def refuse_offers(connection: Connection, team_id: str, passages: Sequence[PassageText]) -> None:
    """Delete all vectors offered for the texts of these passages, in the buckets of their sources."""
    connection.execute(
        "DELETE FROM vector_offers WHERE team_id = :team_id"
        " AND text_sha256 IN (SELECT value FROM json_each(:hashes)) AND bucket_id IN"
        " (SELECT bucket_id FROM memberships WHERE source_id IN (SELECT value FROM json_each(:source_ids)))",
        {
            "team_id": team_id,
            "hashes": json.dumps(sorted({each.text_sha256 for each in passages})),
            "source_ids": json.dumps(sorted({each.source_id for each in passages})),
        },
    )


def delete_offers_of_bucket(connection: Connection, bucket_id: str) -> None:
    connection.execute("DELETE FROM vector_offers WHERE bucket_id = :bucket_id", {"bucket_id": bucket_id})


def delete_offers_before(connection: Connection, offered_at: str) -> int:
    """Delete the offers made before this time, and return how many."""
    cursor = connection.execute("DELETE FROM vector_offers WHERE offered_at < :offered_at", {"offered_at": offered_at})
    return cursor.rowcount
