// Pushes a job and waits for its result. net/http is all it needs: go run serve-producer.go
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

type job struct{ ID, State, Detail, Result string }

func call(method, path, body, name, value string) (answer job) {
	request, err := http.NewRequest(method, cmp.Or(os.Getenv("MILLPOND_URL"), "http://127.0.0.1:8080")+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header = http.Header{name: {value}, "Content-Type": {"application/json"}}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MILLPOND_TOKEN"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode >= 400 {
		log.Fatal(response.Status, " ", answer.Detail, err)
	}
	return answer
}

func main() { // The key makes this the same job, however often it is sent.
	j := call("POST", "/v1/queues/emails/jobs", `{"data":{"to":"ada@example.org"}}`, "Idempotency-Key", "welcome-ada-go")
	for j.State != "done" && j.State != "dead" && j.State != "cancelled" {
		j = call("GET", "/v1/jobs/"+j.ID, "", "Prefer", "wait=30")
	}
	fmt.Println(j.State, j.Result)
}
