// Works on a queue. net/http is all it needs: go run serve-worker.go
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func post(path string, body map[string]any, prefer string) (answer struct{ Jobs []map[string]any }) {
	text, _ := json.Marshal(body)
	request, _ := http.NewRequest("POST", cmp.Or(os.Getenv("MILLPOND_URL"), "http://127.0.0.1:8080")+path, bytes.NewReader(text))
	request.Header = http.Header{"Content-Type": {"application/json"}, "Prefer": {prefer}, "Authorization": {"Bearer " + os.Getenv("MILLPOND_TOKEN")}}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		defer response.Body.Close()
		err = json.NewDecoder(response.Body).Decode(&answer)
	} // 409: the lease ran out, and another worker has the job
	if err != nil || (response.StatusCode >= 400 && response.StatusCode != 409) {
		log.Fatal(path, " ", err, response)
	}
	return answer
}

func main() {
	stop := make(chan os.Signal, 1) // Asked to stop, it does so once the claim is answered and the job done.
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	for len(stop) == 0 {
		for _, j := range post("/v1/queues/emails/claims", map[string]any{"worker": "go", "lease": 60000}, "wait=10").Jobs {
			result := fmt.Sprint("sent to ", j["data"].(map[string]any)["to"])
			post(fmt.Sprint("/v1/queues/emails/jobs/", j["id"], "/complete"), map[string]any{"fence": j["fence"], "result": result}, "")
		}
	}
}
