"""Works on a queue. Python's own HTTP client is all it needs."""
import json
import os
import signal
import urllib.error
import urllib.request

SERVER = os.environ.get("MILLPOND_URL", "http://127.0.0.1:8080")


def post(path, body, **headers):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    if "MILLPOND_TOKEN" in os.environ:
        request.add_header("Authorization", "Bearer " + os.environ["MILLPOND_TOKEN"])
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def work(data):
    return "sent to " + data["to"]


stopping = []  # Asked to stop, it does so once the claim is answered and the job done.
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: stopping.append(number))
while not stopping:
    for job in post("/v1/queues/emails/claims", {"worker": "python", "lease": 60000}, Prefer="wait=10")["jobs"]:
        path = "/v1/queues/emails/jobs/" + job["id"]
        try:
            try:
                word, told = "complete", {"result": work(job["data"])}
            except Exception as error:
                word, told = "fail", {"error": {"name": type(error).__name__, "message": str(error)}}
            post(path + "/" + word, {"fence": job["fence"], **told})
        except urllib.error.HTTPError as error:
            if error.code != 409:  # 409: the lease ran out, and another worker has the job
                raise
