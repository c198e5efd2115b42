package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/note"
)

const askAgain = time.Millisecond

// prove measures from the first byte sent until a proof of inclusion under a signed checkpoint has verified.
func prove(ctx context.Context, s settings) error {
	verifier, err := note.NewVerifier(s.Key)
	if err != nil {
		return err
	}
	root, err := url.Parse(s.URL)
	if err != nil {
		return err
	}
	fetcher, err := client.NewHTTPFetcher(root, http.DefaultClient)
	if err != nil {
		return err
	}
	took := make([]float64, s.Count)
	for sample := range took {
		entry := make([]byte, s.EntryBytes)
		if _, err := rand.Read(entry); err != nil {
			return err
		}
		started := time.Now()
		index, err := add(ctx, s.URL, entry)
		if err != nil {
			return err
		}
		if err := proven(ctx, fetcher, verifier, entry, index); err != nil {
			return err
		}
		took[sample] = float64(time.Since(started).Microseconds()) / 1000
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

func add(ctx context.Context, base string, entry []byte) (uint64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(base, "/")+"/add", bytes.NewReader(entry))
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/add answered %d: %s", answer.StatusCode, text)
	}
	return strconv.ParseUint(string(text), 10, 64)
}

func proven(ctx context.Context, fetcher *client.HTTPFetcher, verifier note.Verifier, entry []byte, index uint64) error {
	checkpoint, err := covering(ctx, fetcher, verifier, index)
	if err != nil {
		return err
	}
	builder, err := client.NewProofBuilder(ctx, checkpoint.Size, fetcher.ReadTile)
	if err != nil {
		return err
	}
	path, err := builder.InclusionProof(ctx, index)
	if err != nil {
		return err
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(entry)
	return proof.VerifyInclusion(rfc6962.DefaultHasher, index, checkpoint.Size, leaf, path, checkpoint.Hash)
}

// covering waits for a checkpoint of a tree that has the entry.
func covering(ctx context.Context, fetcher *client.HTTPFetcher, verifier note.Verifier, index uint64) (*log.Checkpoint, error) {
	for {
		checkpoint, _, _, err := client.FetchCheckpoint(ctx, fetcher.ReadCheckpoint, verifier, origin)
		if err == nil && checkpoint.Size > index {
			return checkpoint, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}
