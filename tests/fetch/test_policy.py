"""What is never fetched: every spelling of a refused place, names that lead there, redirects that lead there."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest

from svc_daemon.core.access.addresses import AddressPolicy, AllowedNetwork, parse_allowed
from svc_daemon.errors import ServiceError
from svc_daemon.fetch.failures import FetchFailed
from svc_daemon.fetch.fetchers import Fetcher
from tests.fetch.servers import Exchange, Kept, Names, serving

#: Spellings of places that only this machine or its network can reach, and of URLs that are none of the web's.
REFUSED = [
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:7820/v1/buckets",
    "https://127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http://127.0.0.2/",
    "http://127.255.255.254/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127/",
    "http://2130706433/",
    "http://3232235777/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0X7F.0.0.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://127.0.0.01/",
    "http://127.000.000.001/",
    "http://127.0.0.1./",
    "http://127.0.0.0x1/",
    "http://4294967297/",
    "http://127.0.0.257/",
    "http://127%2e0%2e0%2e1/",
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%00.example.com/",
    "http://127.0.0.1%20/",
    "http://127.0.0.1%23.example.com/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://127\uff0e0\uff0e0\uff0e1/",
    "http://127\uff610\uff610\uff611/",
    "http://\u0661\u0662\u0667.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://0.0.0.0:80/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost:80/",
    "http://app.localhost/",
    "http://loc%61lhost/",
    "http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/",
    "http://local\u00adhost/",
    "http://localho\u017ft/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::0001]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::FFFF:7F00:0001]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::1%25lo]/",
    "http://[::1%lo]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:c0a8:101::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://192.168.257/",
    "http://0xc0a80101/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254:80/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://user@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://127.0.0.1\t/",
    "ht\ntp://127.0.0.1/",
    "http://\x00127.0.0.1/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "ftp://example.com/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/",
    "unix:///var/run/docker.sock",
    "jar:http://127.0.0.1!/",
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "http://example.com:8080/",
    "http://example.com:99999/",
]

PUBLIC = "1.1.1.1"


class Anywhere:
    """Resolves every name to a public address: what is refused all the same is refused by its spelling."""

    async def resolve(self, name: str) -> Sequence[str]:
        return [PUBLIC]


def blocked(fetcher: Fetcher, url: str) -> ServiceError:
    """The refusal of a URL, the same at a check and at a fetch."""
    refusals = []
    for request in (fetcher.check(url), fetcher.fetch(url, Kept())):
        try:
            asyncio.run(request)
        except ServiceError as refusal:
            refusals.append(refusal)
    assert [(refusal.code, refusal.rule.status) for refusal in refusals] == [("url_fetch_blocked", 400)] * 2, url
    assert refusals[0].message == refusals[1].message, url
    return refusals[1]


def test_a_refused_place_is_refused_in_every_spelling_and_a_public_one_is_not() -> None:
    fetcher = Fetcher(AddressPolicy(), resolver=Anywhere())
    assert len(REFUSED) == len(set(REFUSED)) >= 60
    for url in REFUSED:
        blocked(fetcher, url)
    for url in ("http://example.com/", "https://example.com/", "http://8.8.8.8/", "http://bücher.de/"):
        asyncio.run(fetcher.check(url))


def test_allowed_loopback_has_one_spelling() -> None:
    fetcher = Fetcher(AddressPolicy(parse_allowed("127.0.0.0/8")), resolver=Anywhere())
    asyncio.run(fetcher.check("http://127.0.0.1:3000/"))
    for host in (
        *("2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.0.1.", "127.0.0.01", "[::ffff:127.0.0.1]"),
        *("%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", "[::1]", "0.0.0.0", "10.0.0.1", "user@127.0.0.1"),
    ):
        blocked(fetcher, f"http://{host}:3000/")


def test_localhost_is_the_loopback_address_that_is_allowed() -> None:
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        fetcher = Fetcher(server.policy, resolver=Names())
        asyncio.run(fetcher.fetch(server.url(host="localhost"), Kept()))
        asyncio.run(fetcher.fetch(server.url(host="app.localhost"), Kept()))
    assert [request.headers["host"].partition(":")[0] for request in server.requests] == ["localhost", "app.localhost"]


def test_the_daemons_own_address_is_refused_where_loopback_is_allowed() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        policy = AddressPolicy(server.policy.allowed, own=(ip_address("127.0.0.1"), server.port))
        assert blocked(Fetcher(policy), server.url()).details == {"reason": "address"}
        assert blocked(Fetcher(policy), server.url(host="localhost")).details == {"reason": "address"}
    assert server.requests == []


def test_a_rule_for_one_port_opens_no_other() -> None:
    with serving(lambda exchange: exchange.answer()) as server:
        policy = AddressPolicy((AllowedNetwork(ip_network("127.0.0.0/8"), server.port + 1),))
        assert blocked(Fetcher(policy), server.url()).details == {"reason": "port"}
    assert server.requests == []


def test_one_refused_address_refuses_the_name() -> None:
    for answers in (
        ["10.0.0.1"],
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, PUBLIC, PUBLIC, PUBLIC, PUBLIC, "169.254.169.254"],
        ["2606:4700::1", "::1"],
        ["::ffff:10.0.0.1"],
        ["64:ff9b::a00:1"],
        ["fe80::1%2"],
    ):
        names = Names(files_example=[answers, answers])
        refused = blocked(Fetcher(AddressPolicy(), resolver=names), "http://files.example/")
        assert refused.details == {"reason": "address"}
        assert not any(address in str(refused) for address in answers)


def test_a_name_without_an_address_fails_and_may_be_tried_again() -> None:
    for names in (Names(), Names(gone_example=[[]])):
        with pytest.raises(FetchFailed) as failed:
            asyncio.run(Fetcher(AddressPolicy(), resolver=names).fetch("http://gone.example/", Kept()))
        assert (failed.value.code, failed.value.rule.status, failed.value.rule.retryable) == (
            "url_fetch_failed",
            502,
            True,
        )
        assert failed.value.details == {"reason": "name_not_resolved"}


def test_a_refused_port_is_refused_before_the_name_is_asked_for() -> None:
    names = Names()
    assert blocked(Fetcher(AddressPolicy(), resolver=names), "http://gone.example:22/").details == {"reason": "port"}
    assert names.asked == []


def test_a_name_that_changes_between_check_and_connection_leads_where_it_was_checked() -> None:
    names = Names(files_example=[["127.0.0.1"], ["127.0.0.2"]])
    with serving(lambda exchange: exchange.answer(body=b"x")) as server:
        fetcher = Fetcher(server.policy, resolver=names)
        asyncio.run(fetcher.fetch(server.url(host="files.example"), Kept()))
        (request,) = server.requests
        assert (request.headers["host"], names.asked) == (f"files.example:{server.port}", ["files.example"])
        assert blocked(fetcher, server.url(host="files.example")).details == {"reason": "address"}
    assert len(server.requests) == 1


def test_a_redirect_is_checked_again_even_to_the_same_name() -> None:
    names = Names(files_example=[["127.0.0.1"], ["10.0.0.1"]])
    with (
        serving(lambda exchange: exchange.answer(302, location="/again")) as server,
        pytest.raises(ServiceError) as refused,
    ):
        asyncio.run(Fetcher(server.policy, resolver=names).fetch(server.url(host="files.example"), Kept()))
    assert (refused.value.code, server.paths) == ("url_fetch_blocked", ["/"])


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://2130706433/",
        "//0x7f.1/",
        "http://localhost:22/",
        "http://inner.example/",
        "http://jo:word@127.0.0.1:{port}/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "http://inner.example/\x01",
    ],
)
def test_a_redirect_to_a_refused_place_is_refused_and_not_quoted(location: str) -> None:
    def script(exchange: Exchange) -> None:
        exchange.answer(302, b"body", location=location.format(port=server.port).replace("\x01", "\xa0"))

    sink = Kept()
    names = Names(inner_example=[["10.0.0.7"]])
    with serving(script) as server, pytest.raises(ServiceError) as refused:
        asyncio.run(Fetcher(server.policy, resolver=names).fetch(server.url("/start"), sink))
    assert refused.value.code == "url_fetch_blocked"
    assert server.paths == ["/start"]
    assert sink.is_discarded
    message = f"{refused.value.message} {refused.value.details}"
    assert not any(word in message for word in ("inner", "10.0.0", "169.254", "passwd", "word", str(server.port)))


def test_a_redirect_to_an_allowed_place_is_followed() -> None:
    with (
        serving(lambda exchange: exchange.answer(body=b"there")) as there,
        serving(lambda exchange: exchange.answer(302, location=there.url("/x"))) as here,
    ):
        policy = AddressPolicy(here.policy.allowed + there.policy.allowed)
        asyncio.run(Fetcher(policy).fetch(here.url(), Kept()))
    assert there.paths == ["/x"]
