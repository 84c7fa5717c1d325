"""Which buckets a request names: every way, none, and two at once; in a manifest at its root, on items, or both."""

from typing import Any

from svc_daemon.core.uploads.destinations import EITHER, ID, SLUG, BucketName, Naming, in_body, in_manifest, in_path
from svc_daemon.wire.codes import ErrorCode
from svc_daemon.wire.legacy import DestinationFields, LegacyManifest
from tests.core.refusals import field_of, refusal

OWN = {"bucket": "a"}


def named(fields: dict[str, Any]) -> Naming:
    return in_body(DestinationFields.model_validate(fields))


def manifest(*items: dict[str, Any], **root: Any) -> LegacyManifest:
    listed = [{"client_file_id": str(number), **item} for number, item in enumerate(items)]
    return LegacyManifest.model_validate({"version": 1, "items": listed, **root})


NAMED: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    ({"bucket_ids": ["x", "y"]}, [("x", "bucket_ids.0", ID), ("y", "bucket_ids.1", ID)]),
    ({"bucket_slugs": ["x"]}, [("x", "bucket_slugs.0", SLUG)]),
    ({"bucket": "x"}, [("x", "bucket", EITHER)]),
    ({"bucket": "x", "bucket_ids": [], "bucket_slugs": None}, [("x", "bucket", EITHER)]),
    ({"bucket": "", "bucket_ids": ["x"]}, [("x", "bucket_ids.0", ID)]),
]


def test_each_way_names_buckets_by_itself() -> None:
    for fields, names in NAMED:
        assert named(fields) == Naming(tuple(BucketName(*each) for each in names), in_body=True), fields
        assert named(fields | {"create_missing_buckets": True}).creates_missing, fields


def test_no_name_and_two_ways_at_once_are_refused() -> None:
    nothing: list[dict[str, Any]] = [{}, {"bucket_ids": []}, {"bucket": ""}, {"create_missing_buckets": True}]
    for fields in nothing:
        assert refusal(named, fields).code is ErrorCode.BUCKET_REQUIRED, fields
    ids, slugs, either = {"bucket_ids": ["x"]}, {"bucket_slugs": ["x"]}, {"bucket": "x"}
    for twice, path in [
        (ids | slugs, "bucket_slugs"),
        (slugs | either, "bucket"),
        (ids | slugs | either, "bucket_slugs"),
    ]:
        assert field_of(refusal(named, twice))[1] == path, twice


def test_a_name_means_an_id_a_slug_or_either() -> None:
    for kind, meant in [(ID, [True, False]), (SLUG, [False, True]), (EITHER, [True, True])]:
        assert [BucketName(text, "", kind).means("bkt_1", "one") for text in ("bkt_1", "one")] == meant
        assert not BucketName("other", "", kind).means("bkt_1", "one")


def test_a_path_names_one_bucket_that_nobody_makes() -> None:
    assert in_path("x") == Naming((BucketName("x", "bucket"),))
    assert not in_path("x").creates_missing


def test_a_manifest_names_buckets_at_its_root_or_on_every_item() -> None:
    root = in_manifest(manifest({}, {}, bucket="a"))
    assert (root.root, root.items) == (Naming((BucketName("a", "manifest.bucket"),), in_body=True), (None, None))
    items = in_manifest(manifest(OWN, {"bucket_slugs": ["b"]}))
    assert items.root is None
    paths = [[name.path for name in item.names] for item in items.items if item]
    assert paths == [["manifest.items.0.bucket"], ["manifest.items.1.bucket_slugs.0"]]


def test_an_item_may_have_its_own_beside_the_root() -> None:
    both = in_manifest(manifest(OWN, {}, bucket="a"))
    assert both.root is not None
    assert [item is not None for item in both.items] == [True, False]


def test_items_without_any_bucket_are_all_named() -> None:
    without: list[list[dict[str, Any]]] = [[{}], [OWN, {}], [{}, OWN, {}]]
    for items in without:
        refused = refusal(in_manifest, manifest(*items))
        missing = [f"manifest.items.{n}" for n, item in enumerate(items) if not item]
        assert (refused.code, refused.details["items"]) == (ErrorCode.BUCKET_REQUIRED, missing)


def test_the_roots_leave_to_make_buckets_holds_for_every_item() -> None:
    naming = in_manifest(manifest(OWN, OWN, create_missing_buckets=True))
    assert all(item is not None and item.creates_missing for item in naming.items)
    naming = in_manifest(manifest(OWN, OWN | {"create_missing_buckets": True}))
    assert [item is not None and item.creates_missing for item in naming.items] == [False, True]
