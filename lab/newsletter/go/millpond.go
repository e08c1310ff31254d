package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

const (
	leaseMs = 8000
	jobs    = "/v1/queues/emails"
	// Most jobs of one claim that millpond serve gives.
	mostPerClaim = 100
	settleEvery  = 50 * time.Millisecond
)

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

type claimed struct {
	ID    string
	Fence int64
	Data  struct{ Email string }
}
type ending struct {
	ID    string `json:"id"`
	Fence int64  `json:"fence"`
}

func post(url string, body any, prefer string, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest("POST", url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if prefer != "" {
		request.Header.Set("Prefer", prefer)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 400 {
		problem, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s answers %d: %s", url, response.StatusCode, problem)
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func producer(url string) handler {
	return func(w http.ResponseWriter, _ *http.Request, email string) {
		var job struct{ ID string }
		err := post(url+jobs+"/jobs", map[string]any{"data": map[string]string{"email": email}}, "", &job)
		if err != nil {
			http.Error(w, "the queue cannot take it now", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Location", "/v1/jobs/"+job.ID)
		w.WriteHeader(http.StatusAccepted)
	}
}

// Each mail in a goroutine of its own. The lease is longer than a mail takes, so it need not be extended.
func work(mailbox *mailbox, url string, slots int) {
	free := make(chan struct{}, slots)
	for n := 0; n < slots; n++ {
		free <- struct{}{}
	}
	sent := make(chan ending, slots)
	go settle(url, sent)
	name := fmt.Sprint("go-", os.Getpid())
	fmt.Println("ready")
	for {
		<-free
		limit := 1
		for limit < mostPerClaim && len(free) > 0 {
			<-free
			limit++
		}
		var found struct{ Jobs []claimed }
		claim := map[string]any{"worker": name, "limit": limit, "lease": leaseMs}
		if err := post(url+jobs+"/claims", claim, "wait=10", &found); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
		for n := len(found.Jobs); n < limit; n++ {
			free <- struct{}{}
		}
		for _, job := range found.Jobs {
			go func(job claimed) {
				if err := mailbox.send(job.Data.Email); err != nil {
					log.Print(err) // Its lease ends, and the job is tried again.
				} else {
					sent <- ending{job.ID, job.Fence}
				}
				free <- struct{}{}
			}(job)
		}
	}
}

// What has ended within 50 ms is told in one request.
func settle(url string, sent <-chan ending) {
	for first := range sent {
		done := []ending{first}
		time.Sleep(settleEvery)
		for len(sent) > 0 && len(done) < mostPerClaim {
			done = append(done, <-sent)
		}
		for post(url+jobs+"/settle", map[string]any{"complete": done}, "", nil) != nil {
			time.Sleep(settleEvery)
		}
	}
}
