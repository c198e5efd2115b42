package main

import (
	"time"

	"github.com/cometbft/cometbft/config"
)

// settings of one node, as JSON in the first argument.
type settings struct {
	Home  string `json:"home"`
	RPC   string `json:"rpc"`
	P2P   string `json:"p2p"`
	Peers string `json:"peers"`
	Tuned bool   `json:"tuned"`
}

// configuration is what `cometbft init` writes, on other addresses; tuned adds what its documentation
// (docs/references/config) recommends for throughput and latency, and room for the whole load in the mempool.
func configuration(s settings) *config.Config {
	c := config.DefaultConfig()
	c.SetRoot(s.Home)
	c.RPC.ListenAddress = "tcp://" + s.RPC
	c.RPC.PprofListenAddress = ""
	c.P2P.ListenAddress = "tcp://" + s.P2P
	c.P2P.PersistentPeers = s.Peers
	// all nodes are on loopback
	c.P2P.AddrBookStrict = false
	c.P2P.AllowDuplicateIP = true
	if !s.Tuned {
		return c
	}
	c.Consensus.TimeoutCommit = 0
	c.Consensus.CreateEmptyBlocks = false
	c.Consensus.PeerGossipSleepDuration = 2 * time.Millisecond
	c.Mempool.Recheck = false
	c.Mempool.Size = 50_000
	c.Mempool.CacheSize = 100_000
	c.Mempool.MaxTxsBytes = 1 << 30
	c.P2P.FlushThrottleTimeout = time.Millisecond
	c.P2P.MaxPacketMsgPayloadSize = 64 << 10
	c.P2P.SendRate = 1 << 30
	c.P2P.RecvRate = 1 << 30
	c.RPC.MaxRequestBatchSize = 1_000
	c.RPC.MaxBodyBytes = 10 << 20
	c.Storage.DiscardABCIResponses = true
	c.TxIndex.Indexer = "null"
	return c
}
