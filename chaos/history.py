"""The journal, sorted by what is asked of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from chaos.journal import Line


@dataclass
class History:
    """What happened to each job."""

    # In the order in which they were written, which for one lane is that of its requests.
    acknowledged: dict[str, Line] = field(default_factory=dict)
    begins: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[tuple[str, int, str], Line] = field(default_factory=dict)
    lanes: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    stages: list[Line] = field(default_factory=list)
    # When the stage of a job was first known to be kept.
    kept: dict[tuple[str, str], Line] = field(default_factory=dict)
    settled: list[Line] = field(default_factory=list)
    refused: int = 0
    # When each process ended.
    deaths: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> History:
        """Sort these lines."""
        history = cls()
        for line in lines:
            history._take(line)
        return history

    def _take(self, line: Line) -> None:
        match line.event:
            case "acknowledged":
                self.acknowledged.setdefault(line.job, line)
            case "begin":
                self.begins[line.job].append(line)
                if line.lane:
                    self.lanes[line.lane].append(line)
            case "end":
                self.ends[line.job, line.token, line.nonce] = line
            case "stage":
                self.stages.append(line)
            case "kept":
                # An attempt that finds a stage kept says so as well: the first counts.
                self.kept.setdefault((line.job, line.name), line)
            case "settled":
                self.settled.append(line)
            case "refused":
                self.refused += 1
            case "died":
                self.deaths[line.number] = line.at

    def valid_until(self, begin: Line) -> float:
        """Until when an attempt ran as the owner of its job: until it ended, its process died, or
        a later attempt at the same job began, since then its lease was lost.
        """
        moments = [self.deaths.get(begin.pid, float("inf"))]
        ended = self.ends.get((begin.job, begin.token, begin.nonce))
        if ended is not None:
            moments.append(ended.at)
        moments += [each.at for each in self.begins[begin.job] if each.token > begin.token]
        return min(moments)

    def take_overs(self) -> list[float]:
        """For each attempt that was under way when its process died: seconds until the next one."""
        found = []
        for begins in self.begins.values():
            for begin in begins:
                death = self.deaths.get(begin.pid)
                if death is None or (begin.job, begin.token, begin.nonce) in self.ends:
                    continue
                later = [each.at for each in begins if each.token > begin.token and each.at > death]
                if later:
                    found.append(min(later) - death)
        return found
