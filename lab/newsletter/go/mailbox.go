package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// The mail server: slow, and it really writes each mail. A maildir: a mail in new/ is whole, even after a SIGKILL.
type mailbox struct {
	folder string
	sent   int64
}

func openMailbox(folder string) *mailbox {
	maildir := filepath.Join(folder, "Maildir")
	for _, part := range []string{"tmp", "new", "cur"} {
		if err := os.MkdirAll(filepath.Join(maildir, part), 0o755); err != nil {
			log.Fatal(err)
		}
	}
	return &mailbox{folder: maildir}
}

func (m *mailbox) send(email string) error {
	time.Sleep(mailTakesSeconds * time.Second)
	name := fmt.Sprintf("%d.P%dQ%d.go", time.Now().UnixMilli(), os.Getpid(), atomic.AddInt64(&m.sent, 1))
	draft := filepath.Join(m.folder, "tmp", name)
	file, err := os.Create(draft)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(file, "To: %s\r\nSubject: Welcome to the newsletter\r\n\r\nGood to have you here.\r\n", email); err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(m.folder, "new", name))
}

// The address book, a line for each address. A saved address is on the disk before the caller goes on.
type subscribers struct {
	lock sync.Mutex
	file *os.File
}

func openSubscribers(folder string) *subscribers {
	file, err := os.OpenFile(filepath.Join(folder, "subscribers.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	return &subscribers{file: file}
}

func (s *subscribers) save(email string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if _, err := fmt.Fprintln(s.file, email); err != nil {
		return err
	}
	return s.file.Sync()
}
