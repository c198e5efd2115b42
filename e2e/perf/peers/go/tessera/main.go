// A log of Tessera on POSIX files, and a client that requests proofs.
//
//	tessera serve SETTINGS   serves a new log until its input ends; prints the key that verifies its checkpoints
//	tessera prove SETTINGS   adds entries one after the other; prints the milliseconds until each is proven, as a JSON list
//	tessera feed SETTINGS    adds entries within the process; prints how many a second are integrated
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tessera:", err)
		os.Exit(1)
	}
}

// settings of all commands, as JSON in the second argument.
type settings struct {
	// Dir is the directory of a new log.
	Dir    string `json:"dir"`
	Listen string `json:"listen"`
	// Batch is the largest number of entries that are integrated together, AgeMillis how long the first of them waits for
	// others; 0: default settings.
	Batch     uint `json:"batch"`
	AgeMillis int  `json:"ageMillis"`
	// URL and Key are those of a running log.
	URL        string `json:"url"`
	Key        string `json:"key"`
	Count      int    `json:"count"`
	EntryBytes int    `json:"entryBytes"`
}

func dispatch(ctx context.Context, args []string) error {
	acts := map[string]func(context.Context, settings) error{"serve": serve, "prove": prove, "feed": feed}
	if len(args) != 2 || acts[args[0]] == nil {
		return errors.New("serve, prove or feed, and SETTINGS")
	}
	var s settings
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
		return err
	}
	return acts[args[0]](ctx, s)
}
