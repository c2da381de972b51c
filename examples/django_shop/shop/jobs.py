"""The tasks. Workers load this module: `headrace worker --app shop.jobs`."""

import os

import django
from django.apps import apps

import headrace.sync

if not apps.ready:
    # In a worker nobody has set Django up yet. It has to be done before models are imported.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    django.setup()

jobs = headrace.sync.App()  # reads HEADRACE_URL
app = jobs.app  # what the worker loads


@jobs.task(queue="reports", lane="customer:{customer_id}", timeout=300)
def make_report(customer_id: int, year: int) -> dict[str, int]:
    # A `def` handler runs in a thread: Django's models may be used here as in a view.
    return {"customer_id": customer_id, "year": year, "total": 1234}
