"""Which part may import which, and which part owns which library: the table of the architecture."""

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from tests.rules.modules import Module, is_within

#: From the top down. A part imports only from levels below its own; parts on one level don't know each other.
LEVELS = {
    "svc_daemon": "__main__ > command > cluster.offline_move cluster.verify > offline > server > cluster.engines > api "
    "workers > cluster.moving > cluster.marks > operations > cluster.nodes cluster.shared_limits > process > "
    "cluster.s3 cluster.milvus cluster.migrations > store provider extract fetch embed llm > "
    "cluster.rate_limit_rows cluster.postgres > databases data_directory child_processes > core > errors > "
    "settings tools cluster exits > logs > wire paths",
    "svc_cli": "__main__ > main > app > commands > sync evals exports mcp > "
    "transfer daemon.connections > client daemon.units > daemon.services > daemon.process > "
    "daemon.probes progress > render > daemon > "
    "console > settings credentials > private_files given_files > deadlines > "
    "errors interrupts http_responses > exits",
}

#: What the command line may know of the daemon.
SHARED = ("svc_daemon.wire", "svc_daemon.tools", "svc_daemon.paths")

#: The libraries of the extra `cluster`, and the parts that may import them. Others import these parts in functions,
#: so that the embedded default neither needs the libraries nor waits for them.
LATE_OWNERS = {
    "psycopg": "svc_daemon.cluster.postgres",
    "obstore": "svc_daemon.cluster.s3",
    "pymilvus": "svc_daemon.cluster.milvus",
    "grpc": "svc_daemon.cluster.milvus",
}

#: The parts that may import a library; nobody else does.
LIBRARY_OWNERS = {
    **{library: (owner,) for library, owner in LATE_OWNERS.items()},
    "starlette": ("svc_daemon.api",),
    "uvicorn": ("svc_daemon.server.uvicorn_server", "svc_daemon.api"),
    "python_multipart": ("svc_daemon.api",),
    "sqlite3": (
        "svc_daemon.databases",
        # The migrations and checks that only a file can have.
        "svc_daemon.store.migrations",
        "svc_daemon.store.checks",
        "svc_daemon.provider.embedded",
        "svc_cli.sync",
    ),
    "sqlite_utils": ("svc_daemon.store.migrations",),
    "httpcore": ("svc_daemon.fetch",),
    "standardwebhooks": ("svc_daemon.wire.light.webhook_calls", "svc_cli.client.webhooks"),
    # For the operator's model servers alone: URLs of users go through the policy, by httpcore.
    "httpx": ("svc_daemon.llm", "svc_daemon.embed"),
    "rich": ("svc_cli.console", "svc_cli.render", "svc_cli.commands.daily.status"),
    "typer": ("svc_cli.app", "svc_cli.commands", "svc_daemon.command"),
    "opentelemetry": ("svc_daemon.process.telemetry",),
    "prometheus_client": ("svc_daemon.api.handlers.machine.metrics",),
    "yaml": ("svc_cli.evals.golden",),
    "watchdog": ("svc_cli.sync.watch",),
    "tantivy": ("svc_daemon.core.text.languages", "svc_daemon.provider.embedded"),
    "numpy": ("svc_daemon.provider.embedded", "svc_daemon.embed", "svc_daemon.extract.scans"),
    **dict.fromkeys(("PIL", "cv2", "rapidocr"), ("svc_daemon.extract.scans",)),
    **dict.fromkeys(("pypdfium2", "python_calamine", "trafilatura"), ("svc_daemon.extract",)),
    **dict.fromkeys(("onnx", "tokenizers"), ("svc_daemon.embed",)),
    # It turns off what the library would report to its makers.
    "onnxruntime": ("svc_daemon.embed.onnx_inference",),
    **dict.fromkeys(("mcp", "mcp_types"), ("svc_daemon.tools.servers",)),
}

#: Types that are handed on by parts which never use the library itself.
HANDED_ON = {
    "starlette.applications.Starlette": ("svc_daemon.server.server",),
}


def violations(module: Module) -> Iterator[str]:
    """A sentence for each import that the tables forbid."""
    for imported in sorted(set(module.imports())):
        yield from _against_levels(module.name, imported)
        if not any(is_within(module.name, part) for part in HANDED_ON.get(imported, ())):
            for library, owners in LIBRARY_OWNERS.items():
                if is_within(imported, library) and not any(is_within(module.name, owner) for owner in owners):
                    yield f"{module.name} imports {imported}, which belongs to {', '.join(owners)}"
    for imported in sorted(set(module.eager_imports())):
        for owner in sorted(set(LATE_OWNERS.values())):
            if is_within(imported, owner) and not is_within(module.name, owner):
                yield f"{module.name} imports {imported} at its top; that belongs into the function that needs it"


def circle(modules: Sequence[Module]) -> list[str]:
    """The names of modules that import each other in a circle as they are loaded; nothing if there is no circle."""
    known = {module.name for module in modules}
    parents = {
        module.name: {
            name if name in known else name.rpartition(".")[0] for name in module.eager_imports() if name != module.name
        }
        for module in modules
    }
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def level_of(name: str) -> int | None:
    """The level of a module, 0 on top; None for a part that the table doesn't know. The longest name in it decides."""
    package, _, inner = name.partition(".")
    known = {part: level for level, parts in enumerate(LEVELS[package].split(" > ")) for part in parts.split()}
    return max(((part, level) for part, level in known.items() if is_within(inner, part)), default=(None, None))[1]


def _against_levels(importer: str, imported: str) -> Iterator[str]:
    package, target = importer.partition(".")[0], imported.partition(".")[0]
    if target not in LEVELS or importer.split(".")[:2] == imported.split(".")[:2]:
        return
    above, below = level_of(importer), level_of(imported)
    if package != target:
        if package == "svc_daemon":
            yield f"{importer} imports {imported}: the daemon does not know the command line"
        elif not any(is_within(imported, shared) for shared in SHARED):
            yield f"{importer} imports {imported}: of the daemon it may know only {' and '.join(SHARED)}"
    elif above is None or below is None:
        yield f"{importer} imports {imported}: one of them has no level in the table"
    elif below <= above:
        yield f"{importer} imports {imported}, which is not below it"
