package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

const origin = "example.com/bench"

type opened struct {
	appender *tessera.Appender
	reader   tessera.LogReader
	shutdown func(context.Context) error
	key      string
}

// open begins a log. Tuned: batches of as many entries as clients have in flight, and a checkpoint as often as this
// storage publishes one.
func open(ctx context.Context, s settings) (*opened, error) {
	secret, key, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, err
	}
	driver, err := posix.New(ctx, posix.Config{Path: s.Dir})
	if err != nil {
		return nil, err
	}
	options := tessera.NewAppendOptions().WithCheckpointSigner(signer)
	if s.Batch > 0 {
		options = options.WithBatching(s.Batch, time.Duration(s.AgeMillis)*time.Millisecond).
			WithCheckpointInterval(100 * time.Millisecond).
			WithPushback(1 << 20)
	}
	appender, shutdown, reader, err := tessera.NewAppender(ctx, driver, options)
	if err != nil {
		return nil, err
	}
	return &opened{appender, reader, shutdown, key}, nil
}

func serve(ctx context.Context, s settings) error {
	// the log outlives the signal that ends the listener
	log, err := open(context.WithoutCancel(ctx), s)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		index, err := log.appender.Add(r.Context(), tessera.NewEntry(body))()
		switch {
		case errors.Is(err, tessera.ErrPushback):
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			fmt.Fprint(w, index.Index)
		}
	})
	mux.HandleFunc("GET /size", func(w http.ResponseWriter, r *http.Request) {
		size, err := log.reader.IntegratedSize(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, size)
	})
	mux.Handle("GET /", http.FileServer(http.Dir(s.Dir)))
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return err
	}
	fmt.Println(log.key)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	// the parent process has the other end of its input
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// feed keeps as many entries in flight as the log accepts.
func feed(ctx context.Context, s settings) error {
	log, err := open(ctx, s)
	if err != nil {
		return err
	}
	entries := make([][]byte, s.Count)
	for index := range entries {
		entries[index] = make([]byte, s.EntryBytes)
		if _, err := rand.Read(entries[index]); err != nil {
			return err
		}
	}
	started := time.Now()
	var adding sync.WaitGroup
	failed := make(chan error, s.Count)
	for _, entry := range entries {
		future := log.appender.Add(ctx, tessera.NewEntry(entry))
		adding.Go(func() {
			if _, err := future(); err != nil {
				failed <- err
			}
		})
	}
	adding.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return err
	}
	for size := uint64(0); size < uint64(s.Count); {
		if size, err = log.reader.IntegratedSize(ctx); err != nil {
			return err
		}
	}
	fmt.Println(float64(s.Count) / time.Since(started).Seconds())
	return nil
}
