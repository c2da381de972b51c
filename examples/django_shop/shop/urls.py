"""Two views: hand in a report, ask for it later."""

from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

import headrace
from shop.jobs import jobs, make_report


@csrf_exempt
@require_POST
def order_report(request: HttpRequest) -> JsonResponse:
    customer_id, year = int(request.GET["customer_id"]), int(request.GET["year"])
    new = make_report.job(customer_id=customer_id, year=year)
    # Only once the data that the job will read is really there.
    transaction.on_commit(lambda: jobs.enqueue(new))
    return JsonResponse({"job_id": new.id}, status=202)


def read_report(request: HttpRequest, job_id: str) -> JsonResponse:
    try:
        job = jobs.get(job_id)
    except (headrace.JobNotFound, headrace.InvalidInput) as error:
        raise Http404(str(error)) from error
    return JsonResponse({"status": job.status, "progress": job.progress, "report": job.result})


urlpatterns = [
    path("reports", order_report),
    path("reports/<str:job_id>", read_report),
]
