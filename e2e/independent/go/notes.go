package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/transparency-dev/formats/log"
	cosign "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// witness is a validator that cosigns.
type witness struct{ verifier note.Verifier }

func witnessesOf(keys []string) ([]witness, error) {
	var found []witness
	for _, key := range keys {
		verifier, err := cosign.NewVerifierForCosignatureV1(key)
		if err != nil {
			return nil, fmt.Errorf("cosigner key %q: %w", key, err)
		}
		found = append(found, witness{verifier})
	}
	return found, nil
}

// accept opens a checkpoint with the log's key and requires the cosignature of every witness.
func accept(text []byte, origin string, logKey note.Verifier, witnesses []witness) (*log.Checkpoint, error) {
	verifiers := make([]note.Verifier, 0, len(witnesses))
	for _, each := range witnesses {
		verifiers = append(verifiers, each.verifier)
	}
	checkpoint, rest, opened, err := log.ParseCheckpoint(text, origin, logKey, verifiers...)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, errors.New("the checkpoint has more than three lines")
	}
	if len(opened.Sigs) != 1+len(witnesses) || len(opened.UnverifiedSigs) != 0 {
		return nil, fmt.Errorf("%d of %d signatures verify, %d are by unknown keys", len(opened.Sigs), 1+len(witnesses),
			len(opened.UnverifiedSigs))
	}
	for _, each := range opened.Sigs {
		// the libraries ignore bits behind the last byte
		if _, err := base64.StdEncoding.Strict().DecodeString(each.Base64); err != nil {
			return nil, err
		}
		if each.Name == logKey.Name() {
			continue
		}
		if _, err := cosign.CoSigV1Timestamp(each); err != nil {
			return nil, fmt.Errorf("time of the cosignature of %s: %w", each.Name, err)
		}
	}
	return checkpoint, nil
}

// checkNotes verifies the checkpoint and returns the root that it commits to.
func checkNotes(r *report, input Input) (Hash, error) {
	text := []byte(input.Checkpoint)
	logKey, err := note.NewVerifier(input.LogKey)
	if err != nil {
		return Hash{}, fmt.Errorf("log key: %w", err)
	}
	witnesses, err := witnessesOf(input.Cosigners)
	if err != nil {
		return Hash{}, err
	}
	_, err = note.Open(text, note.VerifierList(logKey))
	r.group("sumdb/note opens the checkpoint with the key of the log", []error{err})
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + input.Checkpoint[len(input.Origin)+1:]))
	r.group("sumdb/tlog reads size and root", []error{err})
	if len(witnesses) == 0 {
		return Hash{}, errors.New("no validator cosigns")
	}
	checkpoint, err := accept(text, input.Origin, logKey, witnesses)
	if err != nil {
		return Hash{}, fmt.Errorf("checkpoint: %w", err)
	}
	r.group("formats/log reads it with every cosignature", make([]error, len(witnesses)))
	if int64(checkpoint.Size) != tree.N || !bytes.Equal(checkpoint.Hash, tree.Hash[:]) {
		return Hash{}, errors.New("two readers of one checkpoint disagree")
	}
	flips := make([]error, 0, len(text))
	for at := range text {
		_, err := accept(flipped(text, at), input.Origin, logKey, witnesses)
		flips = append(flips, demandRefusal(err, "byte %d of the checkpoint", at))
	}
	r.group("a checkpoint with any one byte changed is refused", flips)
	return Hash(checkpoint.Hash), nil
}

func flipped(text []byte, at int) []byte {
	changed := bytes.Clone(text)
	changed[at] ^= 1
	return changed
}

// demandRefusal is the error of an undetected change.
func demandRefusal(err error, format string, values ...any) error {
	if err != nil {
		return nil
	}
	return fmt.Errorf("not refused: "+format, values...)
}
