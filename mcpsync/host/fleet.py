"""The servers of a host that are started, and how the set of them changes while the host is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Sequence

from mcpsync.connection.threads import Workers
from mcpsync.deadline import Deadline
from mcpsync.errors import ClientClosed
from mcpsync.host.catalog import Catalog
from mcpsync.host.crew import Crew
from mcpsync.host.member import Member
from mcpsync.host.roster import Changes, Entry

if TYPE_CHECKING:
    from mcpsync.client import Client

__all__ = ["Fleet", "close_all"]

Edit = Callable[[Mapping[str, Entry]], Mapping[str, Entry]]


class Fleet:
    """Entries and members, each as a mapping that is replaced whole: whoever reads needs no lock.

    :param make: a member for an entry; may call functions of the user
    :param crew: its condition guards the two mappings
    :param catalog: has a shelf for each member
    :ivar entries: all servers, in order, those that are not started too
    :ivar members: those that are started
    """

    def __init__(self, make: Callable[[Entry], Member], crew: Crew, catalog: Catalog) -> None:
        self._make = make
        self._crew = crew
        self._catalog = catalog
        self.entries: Dict[str, Entry] = {}
        self.members: Dict[str, Member] = {}
        self.closed = False

    def change(self, edit: Edit, renewed: Sequence[str] = ()) -> tuple[Changes, List[Member]]:
        """Have other entries. Nobody else's connection is touched, and no server is contacted here.

        :param edit: gives the new entries for the old ones; may be called more than once
        :param renewed: servers that get a new member though their entry is the same
        :returns: what changed, and the members that are no longer there, to be closed
        :raises ClientClosed: the host is closed
        """
        while True:
            old, members = self.entries, self.members
            new = dict(edit(old))
            changes = Changes.between(old, new)
            if renewed:
                changes = Changes(
                    changes.added,
                    tuple(name for name in new if name in changes.changed or name in renewed),
                    changes.removed,
                    tuple(name for name in changes.kept if name not in renewed),
                )
            anew = (*changes.added, *changes.changed)
            fresh = {name: self._make(new[name]) for name in anew if new[name].obstacle is None}
            with self._crew.changed:
                if self.closed:
                    raise ClientClosed("the host is closed")
                if self.entries is not old:
                    continue  # another thread was quicker: what it did must not be lost
                self.entries = {name: old[name] if name in changes.kept else new[name] for name in new}
                retired = [member for name, member in members.items() if name not in changes.kept]
                for member in retired:
                    member.retire()
                self.members = {
                    name: fresh[name] if name in fresh else members[name]
                    for name in new
                    if name in fresh or (name in changes.kept and name in members)
                }
                changed = self._catalog.arrange(list(self.members), list(fresh))
            if changed:
                self._catalog.announce()
            return changes, retired

    def connected(self) -> Dict[str, Client]:
        """The clients of those that are ready, by name."""
        return {name: member.client for name, member in self.members.items() if member.is_ready()}


def close_all(clients: Sequence[Client], deadline: Deadline) -> None:
    """Close clients at the same time, as far as the deadline allows."""
    closers = Workers("mcpsync-host-close", max(1, len(clients)))
    for client in clients:

        def close(client: Client = client) -> None:
            client.close(deadline.remaining())

        if len(clients) == 1 or not closers.submit(close):
            close()
    closers.stop()
    closers.drain(deadline.remaining())
