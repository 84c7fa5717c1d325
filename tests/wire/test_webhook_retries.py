"""The result of a webhook call decides whether it is retried."""

from svc_daemon.wire import webhook_calls
from svc_daemon.wire.webhook_calls import Standing, judge_call


def test_failed_webhook_call_is_retried_while_tries_are_left() -> None:
    delivered, pending = Standing(webhook_calls.DELIVERED, 0), Standing(webhook_calls.PENDING, 1)
    given_up = Standing(webhook_calls.GIVEN_UP, 0)
    for http_status, tries_left, standing in [
        *((200, 2, delivered), (204, 1, delivered), (299, 1, delivered)),
        *((199, 2, pending), (302, 2, pending), (500, 2, pending), (None, 2, pending)),
        *((500, 1, given_up), (None, 1, given_up), (404, 0, given_up)),
    ]:
        assert judge_call(http_status, tries_left) == standing, (http_status, tries_left)
