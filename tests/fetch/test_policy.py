"""Blocked addresses are never fetched in any spelling, nor through names or redirects; and the system's resolver."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest

from svc_daemon.core.access.urls import AddressPolicy, AllowedNetwork, parse_allowed
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.connections import MAX_LOOKUPS, SystemResolver
from svc_daemon.fetch.contract import FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from tests.acceptance.installations import PATIENCE_S
from tests.fetch.servers import Exchange, Kept, Names, serving

#: Spellings of hosts that only this machine or its network can reach, or that are invalid, for `http://HOST/`.
HOSTS = """
127.0.0.1 127.0.0.1:80 127.0.0.2 127.255.255.254 127.1 127.0.1 127 2130706433 3232235777 0x7f000001 0x7f.0.0.1
0X7F.0.0.1 0x7f.0x0.0x0.0x1 0x7f.1 017700000001 0177.0.0.1 0177.0.0.01 127.0.0.01 127.000.000.001 127.0.0.1. 127.0.0.0x1
4294967297 127.0.0.257 127%2e0%2e0%2e1 %31%32%37.0.0.1 127.0.0.1%00.example.com 127.0.0.1%20 127.0.0.1%23.example.com
\uff11\uff12\uff17.0.0.1 \u2460\u2461\u2466.0.0.1 127\u30020\u30020\u30021 127\uff0e0\uff0e0\uff0e1
127\uff610\uff610\uff611 \u0661\u0662\u0667.0.0.1 0 0.0.0.0 0.0.0.0:80
localhost LOCALHOST localhost. localhost:80 app.localhost loc%61lhost
\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54
\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3 local\u00adhost localho\u017ft
[::1] [::] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0001] [::127.0.0.1] [::ffff:127.0.0.1]
[::ffff:7f00:1] [::FFFF:7F00:0001] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:0:127.0.0.1] [::1%25lo] [::1%lo]
[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::1] [2002:7f00:1::] [2002:c0a8:101::1] [2001:0:7f00:1::]
[fe80::1] [fe80::1%25eth0] [fd00:ec2::254] [fc00::1] [ff02::1] [2001:db8::1]
10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 192.168.257 0xc0a80101
169.254.169.254 169.254.169.254:80 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 [::ffff:169.254.169.254]
100.100.100.200 168.63.129.16 192.0.0.192 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255
user@127.0.0.1 example.com@127.0.0.1 127.0.0.1@example.com example.com:80@127.0.0.1 127.0.0.1\\@example.com
example.com\\@127.0.0.1 127.0.0.1#@example.com 127.0.0.1?@example.com
example.com:22 example.com:25 example.com:6379 example.com:8080 example.com:99999
"""
#: Blocked URLs, some of them with other schemes than the web's.
URLS = (
    *("http://127.0.0.1:7820/v1/buckets", "https://127.0.0.1/", "HTTP://127.0.0.1/", "http:127.0.0.1/"),
    *("http:/127.0.0.1/", "http:///127.0.0.1/", "http:\\\\127.0.0.1\\", "//127.0.0.1/", "127.0.0.1"),
    *("http://169.254.169.254/latest/meta-data/", "http://127.0.0.1\t/", "ht\ntp://127.0.0.1/"),
    *("http://\x00127.0.0.1/", "file:///etc/passwd", "file://localhost/etc/passwd", "ftp://example.com/"),
    *("gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/", "unix:///var/run/docker.sock"),
    "jar:http://127.0.0.1!/",
)
#: Other spellings of an allowed loopback address, and addresses that aren't allowed.
NOT_ALLOWED = (
    *("2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.0.1.", "127.0.0.01", "[::ffff:127.0.0.1]"),
    *("%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", "[::1]", "0.0.0.0", "10.0.0.1", "user@127.0.0.1"),
)
PUBLIC = "1.1.1.1"


class Anywhere:
    """Resolves every name to a public address, so that a URL can only be blocked for its spelling."""

    async def resolve(self, name: str) -> Sequence[str]:
        return [PUBLIC]


def blocked(fetcher: Fetcher, url: str) -> ServiceError:
    """Assert that a check and a fetch block the URL with the same error, and return it."""
    refusals = []
    for request in (fetcher.check(url), fetcher.fetch(url, Kept())):
        try:
            asyncio.run(request)
        except ServiceError as refusal:
            refusals.append(refusal)
    assert [(refusal.code, refusal.rule.status) for refusal in refusals] == [("url_fetch_blocked", 400)] * 2, url
    assert refusals[0].message == refusals[1].message, url
    return refusals[1]


def test_blocked_hosts_are_blocked_in_every_spelling_and_public_ones_are_not() -> None:
    fetcher = Fetcher(AddressPolicy(), resolver=Anywhere())
    for url in (*(f"http://{host}/" for host in HOSTS.split()), *URLS):
        blocked(fetcher, url)
    for url in ("http://example.com/", "https://example.com/", "http://8.8.8.8/", "http://bücher.de/"):
        asyncio.run(fetcher.check(url))


def test_allowed_loopback_address_is_blocked_in_other_spellings() -> None:
    fetcher = Fetcher(AddressPolicy(parse_allowed("127.0.0.0/8")), resolver=Anywhere())
    asyncio.run(fetcher.check("http://127.0.0.1:3000/"))
    for host in NOT_ALLOWED:
        blocked(fetcher, f"http://{host}:3000/")


def test_localhost_means_the_allowed_loopback_address() -> None:
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        for host in ("localhost", "app.localhost"):
            asyncio.run(Fetcher(server.policy, resolver=Names()).fetch(server.url(host=host), Kept()))
            assert server.requests[-1].headers["host"] == f"{host}:{server.port}"


def test_allowed_loopback_excludes_the_daemons_own_address_and_other_ports() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        own = Fetcher(AddressPolicy(server.policy.allowed, own=(ip_address("127.0.0.1"), server.port)))
        assert blocked(own, server.url()).details == {"reason": "address"}
        assert blocked(own, server.url(host="localhost")).details == {"reason": "address"}
        next_port = AddressPolicy((AllowedNetwork(ip_network("127.0.0.0/8"), server.port + 1),))
        refused = blocked(Fetcher(next_port), server.url())
        assert refused.details == {"reason": "port"}
        assert "SVC_FETCH_ALLOW, such as 127.0.0.0/8:" in refused.message
    assert server.requests == []


@pytest.mark.parametrize(
    "answers",
    (
        *(["10.0.0.1"], ["127.0.0.1"], [PUBLIC, "10.0.0.1"], ["10.0.0.1", PUBLIC], [*[PUBLIC] * 5, "169.254.169.254"]),
        *(["2606:4700::1", "::1"], ["::ffff:10.0.0.1"], ["64:ff9b::a00:1"], ["fe80::1%2"]),
    ),
)
def test_name_with_one_blocked_address_is_blocked(answers: list[str]) -> None:
    names = Names(files_example=[answers, answers])
    refused = blocked(Fetcher(AddressPolicy(), resolver=names), "http://files.example/")
    assert refused.details == {"reason": "address"}
    assert not any(address in str(refused) for address in answers)


@pytest.mark.parametrize("names", (Names(), Names(gone_example=[[]])))
def test_name_without_an_address_fails_as_retryable(names: Names) -> None:
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(Fetcher(AddressPolicy(), resolver=names).fetch("http://gone.example/", Kept()))
    code, rule = failed.value.code, failed.value.rule
    assert (code, rule.status, rule.retryable) == ("url_fetch_failed", 502, True)
    assert failed.value.details == {"reason": "name_not_resolved"}


def test_blocked_port_is_rejected_without_a_lookup_of_the_name() -> None:
    names = Names()
    assert blocked(Fetcher(AddressPolicy(), resolver=names), "http://gone.example:22/").details == {"reason": "port"}
    assert names.asked == []


def test_fetch_connects_to_the_address_that_it_checked() -> None:
    names = Names(files_example=[["127.0.0.1"], ["127.0.0.2"]])
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        fetcher, url = Fetcher(server.policy, resolver=names), server.url(host="files.example")
        asyncio.run(fetcher.fetch(url, Kept()))
        (request,) = server.requests
        assert (request.headers["host"], names.asked) == (f"files.example:{server.port}", ["files.example"])
        assert blocked(fetcher, url).details == {"reason": "address"}
    assert len(server.requests) == 1


def test_redirect_to_the_same_name_is_resolved_and_checked_again() -> None:
    names = Names(files_example=[["127.0.0.1"], ["10.0.0.1"]])
    with serving(lambda exchange: exchange.answer(302, location="/again")) as server:
        request = Fetcher(server.policy, resolver=names).fetch(server.url(host="files.example"), Kept())
        with pytest.raises(ServiceError) as refused:
            asyncio.run(request)
    assert (refused.value.code, server.paths) == ("url_fetch_blocked", ["/"])


def test_redirect_to_a_blocked_url_is_blocked_and_not_quoted_in_the_error() -> None:
    locations = (
        *("http://127.0.0.2:{port}/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"),
        *("http://2130706433/", "//0x7f.1/", "http://localhost:22/", "http://inner.example/", "file:///etc/passwd"),
        *("http://jo:word@127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/", "http://inner.example/\xa0"),
    )

    def script(exchange: Exchange) -> None:
        location = locations[int(exchange.request.path[1:])]
        exchange.answer(302, b"body", location=location.format(port=server.port))

    with serving(script) as server:
        for number, location in enumerate(locations):
            sink, fetcher = Kept(), Fetcher(server.policy, resolver=Names(inner_example=[["10.0.0.7"]]))
            with pytest.raises(ServiceError) as refused:
                asyncio.run(fetcher.fetch(server.url(f"/{number}"), sink))
            assert (refused.value.code, sink.is_discarded) == ("url_fetch_blocked", True), location
            message = f"{refused.value.message} {refused.value.details}"
            quotes = ("inner", "10.0.0", "169.254", "passwd", "word", str(server.port))
            assert not any(word in message for word in quotes), location
    assert server.paths == [f"/{number}" for number in range(len(locations))]


class Hanging:
    """A replacement of `getaddrinfo` that signals each lookup and returns when it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may_answer = threading.Semaphore(0), threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)

    def look_up(self, name: str, *_: object, **__: object) -> list[object]:
        self.asked.release()
        self.may_answer.wait(PATIENCE_S)
        if name == "late.example":
            raise socket.gaierror("late")
        return [(0, 0, 0, "", ("1.1.1.1", 0))]


def test_resolver_returns_addresses_and_raises_os_error_for_an_invalid_name() -> None:
    assert set(asyncio.run(SystemResolver().resolve("localhost"))) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError):
        asyncio.run(SystemResolver().resolve("nothing.invalid"))


def test_number_of_hanging_lookups_is_limited_and_later_ones_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging(monkeypatch)

    async def scenario() -> int:
        resolver = SystemResolver()
        given_up = [asyncio.create_task(resolver.resolve(f"{i}.example")) for i in range(MAX_LOOKUPS)]
        for _ in given_up:
            assert await asyncio.to_thread(hanging.asked.acquire, timeout=PATIENCE_S)
        for task in given_up:
            task.cancel()
        waiting = asyncio.create_task(resolver.resolve("one-more.example"))
        # A cancelled task doesn't free its thread, so the next lookup waits.
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        threads = sum(thread.name == "resolver" for thread in threading.enumerate())
        assert not done
        hanging.may_answer.set()
        assert await asyncio.wait_for(waiting, PATIENCE_S) == ["1.1.1.1"]
        return threads

    assert asyncio.run(scenario()) == MAX_LOOKUPS


def test_lookup_that_ends_after_its_event_loop_was_closed_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = Hanging(monkeypatch)

    async def scenario() -> None:
        task = asyncio.create_task(SystemResolver().resolve("late.example"))
        assert await asyncio.to_thread(hanging.asked.acquire, timeout=PATIENCE_S)
        task.cancel()

    # A lookup of another test may still hang in this process.
    others = set(threading.enumerate())
    asyncio.run(scenario())
    (thread,) = [thread for thread in set(threading.enumerate()) - others if thread.name == "resolver"]
    hanging.may_answer.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
