"""Pushes a job and waits for its result. Python's own HTTP client is all it needs."""
import json
import os
import urllib.request

SERVER = os.environ.get("MILLPOND_URL", "http://127.0.0.1:8080")


def call(method, path, body=None, **headers):
    request = urllib.request.Request(SERVER + path, method=method, headers={"Content-Type": "application/json", **headers})
    if "MILLPOND_TOKEN" in os.environ:
        request.add_header("Authorization", "Bearer " + os.environ["MILLPOND_TOKEN"])
    with urllib.request.urlopen(request, None if body is None else json.dumps(body).encode(), timeout=90) as answer:
        return json.load(answer)


# The key makes this the same job, however often it is sent.
job = call("POST", "/v1/queues/emails/jobs", {"data": {"to": "ada@example.org"}}, **{"Idempotency-Key": "welcome-ada-python"})
while job.get("state") not in ("done", "dead", "cancelled"):
    job = call("GET", "/v1/jobs/" + job["id"], Prefer="wait=30")
print(job["state"], job.get("result"))
