"""Replay and remove messages that made no job; switch destinations, and test them."""

from __future__ import annotations

import time
from datetime import datetime

from headrace.dispatchers.events.dead_letters import DeadLetterNotFound
from headrace.errors import InvalidInput, JobConflict
from headrace.server.dashboard.action import Act, Done, action
from headrace.server.dashboard.pages.intake.dead_letters import LetterFinder, group_of
from headrace.server.dashboard.pages.intake.intake import given_cursor
from headrace.server.http.problems import invalid
from headrace.server.routes.dead_letters import replay_letter

SHOWN_IDS = 20
# One step with a whole group: a page must not be waited for longer. The rest is another step.
MOST_AT_ONCE = 500
SECONDS = 10.0


@action("/intake/letters/{letter_id:path}/replay", scope="admin")
async def replay(act: Act) -> Done:
    """Try one message again."""
    act.caller.check_unrestricted("dead letters")
    letter_id = act.params["letter_id"]
    done = await replay_letter(act.service, letter_id)
    await act.changed("dead-letter.replay", letter_id, job_id=done.job_id)
    act.service.part(LetterFinder).changed()
    return Done("The message has made a job.", to=act.url("/jobs", done.job_id))


@action("/intake/letters/{letter_id:path}/remove", scope="admin")
async def remove(act: Act) -> Done:
    """Delete one message for good."""
    act.caller.check_unrestricted("dead letters")
    letter_id = act.params["letter_id"]
    await act.app.remove_dead_letter(letter_id)
    await act.changed("dead-letter.remove", letter_id)
    act.service.part(LetterFinder).changed()
    return Done("The message is removed.", to=act.url("/intake"))


@action("/intake/groups/{group}/{verb}", scope="admin")
async def change_group(act: Act) -> Done:
    """Replay or remove the messages of a group, as many as one step takes. Those that were set
    aside after the page was read are left alone.
    """
    act.caller.check_unrestricted("dead letters")
    group, verb = act.params["group"], act.params["verb"]
    if verb not in ("replay", "remove"):
        raise invalid("it is either replay or remove", field="verb", value=verb)
    try:
        before = datetime.fromisoformat(act.form.get("before", ""))
    except ValueError:
        raise invalid("the page is missing; open it again", field="before") from None
    step = _GroupStep(act, verb)
    await step.go(group, before, given_cursor(act.form.get("cursor", "")))
    if step.changed:
        about = {"group": group, "first_ids": step.changed[:SHOWN_IDS]}
        await act.changed(f"dead-letters.{verb}", f"{len(step.changed)} messages", **about)
    act.service.part(LetterFinder).changed()
    to = act.url("/intake", group=group, cursor=step.cursor if step.stopped else None)
    return Done(step.said(), to=to)


class _GroupStep:
    def __init__(self, act: Act, verb: str) -> None:
        self.act = act
        self.verb = verb
        self.changed: list[str] = []
        self.refused = 0
        self.why = ""
        self.cursor = ""
        self.stopped = False

    async def go(self, group: str, before: datetime, cursor: str) -> None:
        self.cursor = cursor
        ends = time.monotonic() + SECONDS
        async for letter in self.act.service.part(LetterFinder).after(cursor):
            if len(self.changed) + self.refused == MOST_AT_ONCE or time.monotonic() > ends:
                self.stopped = True
                return
            self.cursor = letter.id
            if group_of(letter) == group and letter.set_aside_at <= before:
                await self._change(letter.id)

    async def _change(self, letter_id: str) -> None:
        try:
            if self.verb == "replay":
                await replay_letter(self.act.service, letter_id)
            else:
                await self.act.app.remove_dead_letter(letter_id)
        except DeadLetterNotFound:
            return  # somebody else was faster
        except (InvalidInput, JobConflict) as error:
            self.refused += 1
            self.why = self.why or str(error)
        else:
            self.changed.append(letter_id)

    def said(self) -> str:
        done = "made a job" if self.verb == "replay" else "removed"
        number = len(self.changed)
        words = [f"{number:,} {'message' if number == 1 else 'messages'} {done}."]
        if self.refused:
            words.append(f"{self.refused:,} made none: {self.why[:200].rstrip('.')}.")
        if self.stopped:
            words.append("There may be more of them: do it again to go on from here.")
        return " ".join(words)


# -- destinations --------------------------------------------------------------------------------

WHAT = "destinations"


@action("/intake/destinations/{name}/enable", scope="admin")
async def enable(act: Act) -> Done:
    """Let events go to a destination again."""
    return await _enable(act, enabled=True)


@action("/intake/destinations/{name}/disable", scope="admin")
async def disable(act: Act) -> Done:
    """Let no event go to a destination."""
    return await _enable(act, enabled=False)


@action("/intake/destinations/{name}/test", scope="admin")
async def test(act: Act) -> Done:
    """Send a test event, and show the job that delivers it."""
    act.caller.check_unrestricted(WHAT)
    name = act.params["name"]
    job = await act.app.test_destination(name)
    await act.changed("destination.test", name, job_id=job.id)
    return Done(f"A test is on its way to {name}.", to=act.url("/jobs", job.id))


async def _enable(act: Act, *, enabled: bool) -> Done:
    act.caller.check_unrestricted(WHAT)
    name, word = act.params["name"], "enable" if enabled else "disable"
    await act.app.enable_destination(name, enabled)
    await act.changed(f"destination.{word}", name)
    return Done(f"Destination {name} is {word}d.")
