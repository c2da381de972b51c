"""Groups of servers for tests start although somebody takes their ports."""

from __future__ import annotations

from tests.engine.redis.production.groups import Group
from tests.engine.redis.production.nodes import ClusterNode, Node, started
from tests.support.servers import redis_binaries

BINARY = redis_binaries()["redis"]


class Unlucky(Group):
    """Two servers. One has a port of its own that another one has."""

    def __init__(self, other: ClusterNode, port: str) -> None:
        super().__init__()
        self.first, self.second = Node(BINARY, "first"), ClusterNode(BINARY, "second")
        if port:
            setattr(self.second, port, getattr(other, port))

    def start(self) -> None:
        self.begin([self.first, self.second])


def test_a_group_is_started_again_elsewhere_if_a_port_is_taken() -> None:
    """Of the server itself, or of the bus of a cluster; and nothing is left of those before."""
    other = ClusterNode(BINARY, "other")
    made: list[Unlucky] = []

    def make() -> Unlucky:
        made.append(Unlucky(other, ["port", "bus", ""][len(made)]))
        return made[-1]

    try:
        other.start()
        assert started(make) is made[2]
        assert [node.process is None for group in made for node in group.nodes] == [True] * 4 + [
            False
        ] * 2
        assert not any(node.folder.exists() for group in made[:2] for node in group.nodes)
    finally:
        for group in made:
            group.destroy()
        other.destroy()


def test_a_node_comes_back_elsewhere_if_its_port_was_taken_meanwhile() -> None:
    node, other = Node(BINARY, "node"), Node(BINARY, "other")
    try:
        node.start()
        node.kill()
        other.port = node.port
        other.start()
        node.revive()
        assert node.port != other.port
        assert node.ready()
        assert other.ready()
    finally:
        node.destroy()
        other.destroy()
