"""The marks of installations in a Milvus (see `cluster.marks`), and the schemas of collections."""

from collections.abc import Sequence

# Import this module only from `server`, which first keeps pymilvus from reading files `.env`.
from pymilvus import CollectionSchema, DataType, Function, FunctionType, MilvusClient

from svc_daemon.cluster.milvus.schema import Collections, CollectionSpec, among


class IndexMarks:
    """The marks are the names of empty collections."""

    def __init__(self, client: MilvusClient, collections: Collections, limit_s: float) -> None:
        """`limit_s` is the longest time of a call."""
        self._limit_s = limit_s
        self._client = client
        self._collections = collections

    def list_marks(self) -> list[str]:
        names = self._client.list_collections(timeout=self._limit_s)
        start = self._collections.mark("")
        return [name.removeprefix(start) for name in names if name.startswith(start)]

    def has_mark(self, mark: str) -> bool:
        return bool(self._client.has_collection(self._collections.mark(mark), timeout=self._limit_s))

    def put_mark(self, mark: str) -> None:
        spec = self._collections.of_mark(mark)
        self._client.create_collection(spec.name, schema=build_schema(self._client, spec), timeout=self._limit_s)

    def has_any(self, source_ids: Sequence[str], team_ids: Sequence[str]) -> bool:  # noqa: ARG002 - teams are enough
        name = self._collections.documents
        if not team_ids:
            return True
        if name not in self._client.list_collections(timeout=self._limit_s):
            return False
        self._client.load_collection(name, timeout=self._limit_s)
        wanted = among("team_id", team_ids)
        return bool(self._client.query(name, filter=wanted, output_fields=["id"], limit=1, timeout=self._limit_s))


def build_schema(client: MilvusClient, spec: CollectionSpec) -> CollectionSchema:
    """Return the collection's schema as pymilvus needs it."""
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    for each in spec.fields:
        options = dict(each.options)
        if "element_type" in options:
            options["element_type"] = DataType[options["element_type"]]
        schema.add_field(each.name, DataType[each.type], **options)
    if spec.bm25 is not None:
        analysed, weights = spec.bm25
        schema.add_function(
            Function(
                name="weigh",
                function_type=FunctionType.BM25,
                input_field_names=[analysed],
                output_field_names=[weights],
            )
        )
    return schema
