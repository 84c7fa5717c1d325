"""Who may speak to the daemon at all: keys, hosts, origins."""

import httpx

from tests.acceptance.installations import Installation


def _error(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert set(body["error"]) == {"code", "message", "retryable", "details"}
    return answer.status_code, body["error"]["code"]


def test_a_key_that_is_missing_malformed_or_unknown_is_refused(shared_installation: Installation) -> None:
    for authorization in ("", "Bearer", "Bearer sk-no-such-key", "Basic c2s6", "sk-no-such-key"):
        with shared_installation.client(Authorization=authorization) as client:
            assert _error(client.get("/v1/buckets")) == (401, "invalid_project_key")
            assert _error(client.put("/v1/buckets/handbook")) == (401, "invalid_project_key")
            health = client.get("/healthz")
            assert (health.status_code, health.headers["Svc-Version"]) == (200, health.json()["version"])


def test_a_host_or_web_page_that_is_not_ours_is_refused(shared_installation: Installation) -> None:
    for host in ("evil.example:7820", "127.0.0.1.evil.example", "10.0.0.1"):
        with shared_installation.client(Host=host) as client:
            assert _error(client.get("/v1/buckets")) == (421, "host_not_allowed")
            assert _error(client.get("/healthz")) == (421, "host_not_allowed")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        with shared_installation.client(**headers) as client:
            assert _error(client.put("/v1/buckets/handbook")) == (403, "origin_not_allowed")


def test_what_is_not_there_gets_the_envelope_and_no_key_is_logged(shared_installation: Installation) -> None:
    with shared_installation.client() as client:
        assert _error(client.get("/v1/no-such-thing")) == (404, "not_found")
        assert _error(client.delete("/v1/search")) == (405, "method_not_allowed")
        assert _error(client.get("/v1/sources/src_missing")) == (404, "source_not_found")
        client.get("/v1/buckets", params={"key": shared_installation.key})
    log = shared_installation.files.log.read_text(encoding="utf-8")
    assert "/v1/buckets" in log
    assert shared_installation.key not in log + shared_installation.printed()
