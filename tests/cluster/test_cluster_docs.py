"""The operator's commands that docs/cluster.md names succeed on a cluster."""

import re

from svc_daemon.exits import EXIT_USAGE
from tests.acceptance.forks import ROOT
from tests.cluster.nodes import MakeNode


def test_commands_of_the_cluster_page_succeed_with_and_without_a_daemon(make_node: MakeNode) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    commands = sorted(set(re.findall(r"`svc-daemon ((?:team|key) [a-z]+[^`]*)`", page)))
    assert [command.split()[:2] for command in commands] == [["key", "create"]]
    node = make_node()
    assert node.operate("serve", "--role", "nobody").exit == EXIT_USAGE
    # The first command creates the installation.
    for is_running in (False, True):
        if is_running:
            node.start()
        for command in commands:
            ended = node.operate(*command.split(), "--json")
            assert ended.exit == 0, (command, ended)
    assert node.stop() == 0
