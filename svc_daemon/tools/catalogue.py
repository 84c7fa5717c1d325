"""The list of the tools: their names, and the description of each for a model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from svc_daemon.tools import answers, batches, buckets, files, searches, sources
from svc_daemon.tools.api_calls import ToolService, refused_fields
from svc_daemon.tools.arguments import Arguments, ToolResult, schema_of_arguments, schema_of_result
from svc_daemon.wire import Json

#: The description of the service for a model.
INSTRUCTIONS = (
    "svc keeps files in buckets and finds passages in them. Uploading returns at once, before a file can be searched: "
    "ask svc-source-status with waitSeconds until it is ready. Find passages with svc-search, or ask a question with "
    "svc-ask, and cite by `citation`, which has file and page. Errors carry a code; where `retryable` is true, call "
    "again a little later."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[ToolResult]
    #: Does it; raises `services.CallFailed`.
    run: Callable[[ToolService, Any], Awaitable[ToolResult]]
    #: Whether it changes nothing. Other tools only add data, and are idempotent.
    reads_only: bool = False

    async def call(self, service: ToolService, arguments: Json) -> ToolResult:
        """Run the tool with unvalidated arguments. Raises CallFailed."""
        try:
            asked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            raise refused_fields(error) from error
        return await self.run(service, asked)

    def input_schema(self, *, takes_paths: bool) -> Json:
        """Return the JSON schema of the arguments, for a server that reads files by path or for one that doesn't."""
        schema = schema_of_arguments(self.arguments)
        return schema if takes_paths else files.without_paths(schema)

    def output_schema(self) -> Json:
        """The JSON schema of the result."""
        return schema_of_result(self.result)


TOOLS = (
    Tool(
        name="svc-upload-file",
        title="Upload a file",
        description=(
            "Store one file in one or several buckets. Returns at once; the file can be searched when "
            "svc-source-status reports that it is ready. The same file sent again to the same place is stored once."
        ),
        arguments=files.UploadFile,
        result=files.UploadedFile,
        run=files.upload_file,
    ),
    Tool(
        name="svc-upload-files-batch",
        title="Upload several files",
        description=(
            "Store 1 to 100 files in buckets in one call, and report for each whether it was stored. All together "
            "must fit into one call: send large files one by one with svc-upload-file."
        ),
        arguments=batches.UploadFilesBatch,
        result=batches.UploadedBatch,
        run=batches.upload_batch,
    ),
    Tool(
        name="svc-search",
        title="Search",
        description=(
            "Find the passages that fit a query best, each with its text and with the file, page or lines to cite it "
            "by. Searches what the default agent searches, usually every bucket, unless buckets are named."
        ),
        arguments=searches.Search,
        result=searches.Passages,
        run=searches.search,
        reads_only=True,
    ),
    Tool(
        name="svc-ask",
        title="Ask",
        description=(
            "Answer a question out of the stored files, with the quotes that the answer rests on and the file and page "
            "of each. Where `grounded` is false, the files don't answer it: report that instead of guessing."
        ),
        arguments=answers.AskArguments,
        result=answers.Answered,
        run=answers.ask,
        reads_only=True,
    ),
    Tool(
        name="svc-source-status",
        title="Is it searchable yet?",
        description=(
            "Show the state of uploaded files, and why one has failed. With waitSeconds it returns as soon as all of "
            "them are ready or failed. Only `ready: true` means that searches find a file."
        ),
        arguments=sources.SourceStatus,
        result=sources.SourceStates,
        run=sources.show_sources,
        reads_only=True,
    ),
    Tool(
        name="svc-list-buckets",
        title="List buckets",
        description="List the buckets in reach with their slugs, which uploads and searches take, and their sizes.",
        arguments=buckets.ListBuckets,
        result=buckets.BucketPage,
        run=buckets.list_buckets,
        reads_only=True,
    ),
)
