// Works on a queue. net/http is all it needs: go run serve-worker.go
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type job struct {
	ID    string
	Fence int
	Data  struct{ To string }
}

func post(path string, body map[string]any, prefer string) (answer struct{ Jobs []job }) {
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
	for {
		for _, j := range post("/v1/queues/emails/claims", map[string]any{"worker": "go", "lease": 60000}, "wait=30").Jobs {
			post("/v1/queues/emails/jobs/"+j.ID+"/complete", map[string]any{"fence": j.Fence, "result": "sent to " + j.Data.To}, "")
		}
	}
}
