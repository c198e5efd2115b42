package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a SHA-256 in hexadecimal JSON text.
type Hash [32]byte

// UnmarshalJSON reads 64 hexadecimal characters.
func (h *Hash) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%q is no SHA-256", text)
	}
	copy(h[:], raw)
	return nil
}

func slices(path []Hash) [][]byte {
	all := make([][]byte, 0, len(path))
	for _, each := range path {
		all = append(all, bytes.Clone(each[:]))
	}
	return all
}

func tlogHashes(path []Hash) []tlog.Hash {
	all := make([]tlog.Hash, 0, len(path))
	for _, each := range path {
		all = append(all, tlog.Hash(each))
	}
	return all
}

// leafClaim is one leaf, its index and the expected root.
type leafClaim struct {
	data        []byte
	index, size uint64
	path        []Hash
	root        Hash
}

// judge verifies with both libraries, which must agree.
func (c leafClaim) judge() error {
	leaf := rfc6962.DefaultHasher.HashLeaf(c.data)
	first := proof.VerifyInclusion(rfc6962.DefaultHasher, c.index, c.size, leaf, slices(c.path), c.root[:])
	second := tlog.CheckRecord(tlogHashes(c.path), int64(c.size), tlog.Hash(c.root), int64(c.index), tlog.RecordHash(c.data))
	return agreed(first, second)
}

// judge verifies with both libraries, which must agree.
func (c Consistency) judge() error {
	hasher := rfc6962.DefaultHasher
	first := proof.VerifyConsistency(hasher, c.From, c.To, slices(c.Path), c.FromRoot[:], c.ToRoot[:])
	second := tlog.CheckTree(tlogHashes(c.Path), int64(c.To), tlog.Hash(c.ToRoot), int64(c.From), tlog.Hash(c.FromRoot))
	return agreed(first, second)
}

func agreed(first, second error) error {
	if (first == nil) != (second == nil) {
		panic(fmt.Sprintf("transparency-dev/merkle says %v, sumdb/tlog says %v", first, second))
	}
	return first
}

func withFlippedHash(path []Hash, at int) []Hash {
	changed := append([]Hash(nil), path...)
	changed[at][at%len(Hash{})] ^= 1
	return changed
}

// changes are copies of a claim with one change: a byte of the leaf, of each hash or of the root, or the index.
func (c leafClaim) changes() []leafClaim {
	var all []leafClaim
	for at := range c.data {
		changed := c
		changed.data = flipped(c.data, at)
		all = append(all, changed)
	}
	for at := range c.path {
		changed := c
		changed.path = withFlippedHash(c.path, at)
		all = append(all, changed)
	}
	changed := c
	changed.root[len(Hash{})/2] ^= 1
	all = append(all, changed)
	if len(c.path) > 0 {
		moved, short := c, c
		moved.index ^= 1
		short.path = c.path[1:]
		all = append(all, moved, short)
	}
	return all
}

func (c Consistency) changes() []Consistency {
	older, newer, short := c, c, c
	older.FromRoot[0] ^= 1
	newer.ToRoot[31] ^= 1
	all := []Consistency{older, newer}
	for at := range c.Path {
		changed := c
		changed.Path = withFlippedHash(c.Path, at)
		all = append(all, changed)
	}
	if len(c.Path) > 0 {
		short.Path = c.Path[1:]
		all = append(all, short)
	}
	return all
}

func checkInclusions(r *report, input Input, root Hash) {
	var dockets, logs, flips []error
	for _, each := range input.Inclusions {
		var merkleRoot Hash
		if raw, err := hex.DecodeString(each.Docket.MerkleRoot); err == nil && len(raw) == len(merkleRoot) {
			copy(merkleRoot[:], raw)
		}
		entry, err := json.Marshal(each.Docket)
		if err != nil {
			dockets = append(dockets, err)
			continue
		}
		inDocket := leafClaim{each.Record, each.LeafIndex, each.TreeSize, each.Path, merkleRoot}
		inLog := leafClaim{entry, each.LogIndex, each.LogSize, each.LogPath, root}
		dockets = append(dockets, inDocket.judge())
		logs = append(logs, inLog.judge())
		for _, changed := range append(inDocket.changes(), inLog.changes()...) {
			flips = append(flips, demandRefusal(changed.judge(), "a change of the proof of %s", each.TxID))
		}
	}
	r.group("merkle and tlog find every record in its docket", dockets)
	r.group("merkle and tlog find every docket in the log of the checkpoint", logs)
	r.group("inclusion proofs with one byte or place changed are refused", flips)
}

func checkConsistency(r *report, input Input, root Hash) {
	var proofs, flips []error
	anchored := 0
	for _, each := range input.Consistency {
		proofs = append(proofs, each.judge())
		if each.ToRoot == root {
			anchored++
		}
		for _, changed := range each.changes() {
			flips = append(flips, demandRefusal(changed.judge(), "a change of the proof from %d to %d", each.From, each.To))
		}
	}
	if anchored == 0 {
		proofs = append(proofs, fmt.Errorf("no proof leads to the root of the checkpoint"))
	}
	r.group("merkle and tlog find every log at the beginning of every later one", proofs)
	r.group("consistency proofs with one byte changed are refused", flips)
}
