// The newsletter of experiment E2 in Go, with nothing but the standard library.
//
//	newsletter plain FOLDER PORT                 sends the mail before it answers
//	newsletter queue FOLDER PORT SIZE WORKERS    a bounded channel, and workers in the same process
//	newsletter producer FOLDER PORT URL          pushes to millpond serve
//	newsletter worker FOLDER URL SLOTS           works on what millpond serve has
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

const mailTakesSeconds = 5

func main() {
	mode, folder := os.Args[1], os.Args[2]
	if mode == "worker" {
		work(openMailbox(folder), os.Args[3], number(4))
		return
	}
	subscribers := openSubscribers(folder)
	register := handlers(mode, folder)
	http.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		email := r.PostFormValue("email")
		if r.Method != "POST" || !strings.Contains(email, "@") {
			http.Error(w, "email: an address", http.StatusBadRequest)
			return
		}
		if err := subscribers.save(email); err != nil {
			http.Error(w, "the address could not be saved", http.StatusInternalServerError)
			return
		}
		register(w, r, email)
	})
	fmt.Println("ready")
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[3], nil))
}

type handler func(w http.ResponseWriter, r *http.Request, email string)

func handlers(mode, folder string) handler {
	switch mode {
	case "plain":
		mailbox := openMailbox(folder)
		return func(w http.ResponseWriter, _ *http.Request, email string) {
			if err := mailbox.send(email); err != nil {
				http.Error(w, "the mail could not be sent", http.StatusBadGateway)
				return
			}
			w.WriteHeader(http.StatusOK)
		}
	case "queue":
		queue := startQueue(openMailbox(folder), number(4), number(5))
		return func(w http.ResponseWriter, _ *http.Request, email string) {
			queue <- email // Waits while the queue is full.
			w.WriteHeader(http.StatusAccepted)
		}
	case "producer":
		return producer(os.Args[4])
	}
	log.Fatal("no mode ", mode)
	return nil
}

func startQueue(mailbox *mailbox, size, workers int) chan<- string {
	queue := make(chan string, size)
	for n := 0; n < workers; n++ {
		go func() {
			for email := range queue {
				if err := mailbox.send(email); err != nil {
					log.Print(err)
				}
			}
		}()
	}
	return queue
}

func number(at int) int {
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		log.Fatal(err)
	}
	return value
}
