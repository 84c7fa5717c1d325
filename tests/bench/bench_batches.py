"""How long a batch status takes with one pending batch and with many."""

from functools import partial

from svc_cli.client import Client, Description, Member
from tests.bench.installations import measured, read_options
from tests.bench.machines import report, spread_ms, timed


def main() -> None:
    options = read_options(__doc__, batches=1000, files=10, calls=300)
    with measured(options.folder) as daemon, Client(daemon.base_url, daemon.key) as client:
        client.ensure_bucket("bench")
        ids = [_open(client, 0, options.files)]
        one = _ask(client, ids, options.calls)
        ids += [_open(client, number, options.files) for number in range(1, options.batches)]
        many = _ask(client, ids, options.calls)
        results = {"one": one, "many": many, "times_as_long": round(many["p50_ms"] / one["p50_ms"], 2)}
        report("batches", vars(options), results, daemon.root)


def _open(client: Client, number: int, files: int) -> str:
    names = [(f"{each}.md", f"{number}/{each}.md") for each in range(files)]
    members = [Member(Description(filename=name, title=title, sha256="0" * 64), 1000) for name, title in names]
    return str(client.open_batch("bench", members, f"bench-{number}").body["batch_id"])


def _ask(client: Client, ids: list[str], calls: int) -> dict[str, float]:
    """What so many status calls took, spread over the batches, after 20 that don't count."""
    took_s = [timed(partial(client.batch, ids[number * 7 % len(ids)]))[1] for number in range(calls + 20)]
    return spread_ms(took_s[20:])


if __name__ == "__main__":
    main()
