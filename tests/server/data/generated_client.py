"""Uses the client that openapi-python-client has made: a program of somebody who has only that."""

import importlib
import pkgutil
import sys
import time

import made_client
from made_client import Client
from made_client.api.jobs import create_jobs_post as enqueue
from made_client.api.jobs import find_jobs_get as listed
from made_client.api.jobs import show_jobs_job_id_get as show
from made_client.api.schedules import put_schedules_name_put as put_schedule
from made_client.models import (
    Job,
    JobRequestAdd,
    JobRequestAddArgs,
    Problem,
    ScheduleRequestAdd,
    ScheduleRequestAddParams,
)

for module in pkgutil.walk_packages(made_client.__path__, "made_client."):
    importlib.import_module(module.name)

client = Client(base_url=sys.argv[1])
request = JobRequestAdd(task="add", args=JobRequestAddArgs(a=1, b=2), priority=5)
stored = enqueue.sync(client=client, body=request)
assert isinstance(stored, Job), stored
assert (stored.task, stored.priority) == ("add", 5)

end = time.monotonic() + 60
shown = show.sync(stored.job_id, client=client)
while isinstance(shown, Job) and shown.status != "completed" and time.monotonic() < end:
    time.sleep(0.05)
    shown = show.sync(stored.job_id, client=client)
assert isinstance(shown, Job), shown
assert shown.result == 3

page = listed.sync(client=client, task=["add"], limit=10)
assert [each.job_id for each in page.jobs] == [stored.job_id]

plan = ScheduleRequestAdd(
    expression="*/5 * * * *", task="add", params=ScheduleRequestAddParams(a=1, b=2)
)
schedule = put_schedule.sync("sums", client=client, body=plan)
assert schedule.tz == "UTC", schedule

refused = show.sync("01980000-0000-7000-8000-000000000000", client=client)
assert isinstance(refused, Problem), refused
assert refused.status == 404
client.get_httpx_client().close()
print("used")
