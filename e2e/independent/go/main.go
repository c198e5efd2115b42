// Command independent checks the proofs of a register with general libraries for transparency logs: checkpoints and
// cosignatures as C2SP notes, inclusion and consistency proofs as RFC 6962 trees, each with one byte changed, too.
//
//	go run . < proofs.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Input contains the answers of the REST interface of a register.
type Input struct {
	Origin      string        `json:"origin"`
	Checkpoint  string        `json:"checkpoint"`
	LogKey      string        `json:"logKey"`
	Cosigners   []string      `json:"cosigners"`
	Inclusions  []Inclusion   `json:"inclusions"`
	Consistency []Consistency `json:"consistency"`
}

// Inclusion leads from a record to its docket, and from the docket to the root of the checkpoint.
type Inclusion struct {
	TxID      string   `json:"txId"`
	Record    []byte   `json:"record"`
	LeafIndex uint64   `json:"leafIndex"`
	TreeSize  uint64   `json:"treeSize"`
	Path      []Hash   `json:"path"`
	Docket    LogEntry `json:"docket"`
	LogIndex  uint64   `json:"logIndex"`
	LogSize   uint64   `json:"logSize"`
	LogPath   []Hash   `json:"logPath"`
}

// LogEntry is the leaf of one docket in the register log; its fields are in the order of canonical JSON.
type LogEntry struct {
	DocketNumber     uint64 `json:"docketNumber"`
	Hash             string `json:"hash"`
	MerkleRoot       string `json:"merkleRoot"`
	RegisterID       string `json:"registerId"`
	Timestamp        string `json:"timestamp"`
	ValidatorSetHash string `json:"validatorSetHash"`
}

// Consistency proves that the log of From dockets is a prefix of the log of To dockets.
type Consistency struct {
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	FromRoot Hash   `json:"fromRoot"`
	ToRoot   Hash   `json:"toRoot"`
	Path     []Hash `json:"path"`
}

// report counts kinds of checks and prints a line for each of them.
type report struct{ passed, failed int }

func (r *report) group(what string, errs []error) {
	failed := len(errs) == 0
	for _, err := range errs {
		if err != nil {
			failed = true
			fmt.Printf("NOT %s: %v\n", what, err)
		}
	}
	if failed {
		r.failed++
		fmt.Printf("NOT %s (%d)\n", what, len(errs))
	} else {
		r.passed++
		fmt.Printf("ok  %s (%d)\n", what, len(errs))
	}
}

func run() error {
	var input Input
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&input); err != nil {
		return err
	}
	var r report
	root, err := checkNotes(&r, input)
	if err != nil {
		return err
	}
	checkInclusions(&r, input, root)
	checkConsistency(&r, input, root)
	fmt.Printf("%d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 {
		os.Exit(1)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Printf("REFUSED: %v\n0 passed, 1 failed\n", err)
		os.Exit(1)
	}
}
