"""What becomes of chains that are made somewhere else: which are made again, which have failed, when all is done.

Nothing here knows of an engine. A pool makes chains and says how they ended; the loop submits them, and again those whose worker was lost. A chain
has failed when it ended badly three times in a row without having got any further: workers that are taken away again and again cost time, not chains.
One that waited behind another on a worker that was lost has had no try, and is allowed many such ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

#: Ends without progress after which a chain has failed.
ATTEMPTS = 3
#: Ends before a first step after which a chain has failed all the same.
WAITS = 30

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Ended(Generic[Key]):
    """How a chain ended: well, or with an error; ``made`` are the transitions that are safe by now.

    ``is_final`` says of an error that trying again is no use, ``has_begun`` is false where the worker was lost before it came to the chain.
    """

    chain: Key
    error: BaseException | None = None
    made: int = 0
    is_final: bool = False
    has_begun: bool = True


class Pool(Protocol[Key]):
    """Makes chains."""

    def submit(self, chain: Key) -> None:
        """Makes a chain, from where it is."""

    def wait(self) -> Ended[Key] | None:
        """The next chain that has ended; None now and then, when none has."""


@dataclass
class _Attempts:
    """Bad ends of a chain since it last got further."""

    made: int = 0
    errors: list[BaseException] = field(default_factory=list)
    waits: int = 0

    def have_failed(self, ended: Ended) -> bool:
        if ended.made > self.made:
            self.made, self.errors, self.waits = ended.made, [], 0
        assert ended.error is not None
        if not ended.has_begun:
            self.waits += 1
            return self.waits >= WAITS
        self.errors.append(ended.error)
        return ended.is_final or len(self.errors) >= ATTEMPTS


def make_all(pool: Pool[Key], chains: Iterable[Key]) -> dict[Key, BaseException]:
    """Makes chains until all have come to their end or failed; those that failed, with their last error."""
    left: dict[Key, _Attempts] = {}
    for chain in chains:
        left[chain] = _Attempts()
        pool.submit(chain)
    failed: dict[Key, BaseException] = {}
    while left:
        found = pool.wait()
        # one that was given up may still end
        if found is None or found.chain not in left:
            continue
        if found.error is not None and not left[found.chain].have_failed(found):
            pool.submit(found.chain)
            continue
        del left[found.chain]
        if found.error is not None:
            failed[found.chain] = found.error
    return failed
