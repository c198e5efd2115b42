package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/crypto/ed25519"
)

// A transaction is a public key of 32 bytes, its signature of 64 bytes, an id of 32 bytes and a payload. The signed
// text is that of a submission: the SHA-256 of the id and the payload's own hash, in hexadecimal with a colon between.
const (
	signatureAt = ed25519.PubKeySize
	idAt        = signatureAt + ed25519.SignatureSize
	payloadAt   = idAt + sha256.Size
)

// application checks one Ed25519 signature of each transaction, once, when it is sent to a node. It stores only a
// count, because the node stores the blocks. All of its methods may be called at the same time.
type application struct {
	abci.BaseApplication
	decided   atomic.Int64
	committed atomic.Int64
}

func (*application) CheckTx(_ context.Context, request *abci.CheckTxRequest) (*abci.CheckTxResponse, error) {
	// the mempool checks its transactions again after each block, where a node is configured so
	if request.Type == abci.CHECK_TX_TYPE_RECHECK || isSigned(request.Tx) {
		return &abci.CheckTxResponse{}, nil
	}
	return &abci.CheckTxResponse{Code: 1, Log: "the signature does not verify"}, nil
}

func isSigned(transaction []byte) bool {
	if len(transaction) < payloadAt {
		return false
	}
	payload := sha256.Sum256(transaction[payloadAt:])
	text := hex.EncodeToString(transaction[idAt:payloadAt]) + ":" + hex.EncodeToString(payload[:])
	digest := sha256.Sum256([]byte(text))
	key := ed25519.PubKey(transaction[:signatureAt])
	return key.VerifySignature(digest[:], transaction[signatureAt:idAt])
}

func (a *application) FinalizeBlock(
	_ context.Context,
	request *abci.FinalizeBlockRequest,
) (*abci.FinalizeBlockResponse, error) {
	results := make([]*abci.ExecTxResult, len(request.Txs))
	for index := range results {
		results[index] = &abci.ExecTxResult{}
	}
	count := a.decided.Add(int64(len(request.Txs)))
	return &abci.FinalizeBlockResponse{TxResults: results, AppHash: []byte(strconv.FormatInt(count, 10))}, nil
}

func (a *application) Commit(context.Context, *abci.CommitRequest) (*abci.CommitResponse, error) {
	a.committed.Store(a.decided.Load())
	return &abci.CommitResponse{}, nil
}

// Query answers the number of committed transactions.
func (a *application) Query(context.Context, *abci.QueryRequest) (*abci.QueryResponse, error) {
	return &abci.QueryResponse{Value: []byte(strconv.FormatInt(a.committed.Load(), 10))}, nil
}
