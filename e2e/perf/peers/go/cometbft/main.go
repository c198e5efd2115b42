// A CometBFT node with the application of this folder in its process.
//
//	cometbft init HOME...   keys and one genesis for all of them; prints the node ids as a JSON list
//	cometbft run SETTINGS   runs the node until its input ends; prints "ready"
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/crypto"
	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/node"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cometbft/cometbft/types"
)

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cometbft:", err)
		os.Exit(1)
	}
}

func dispatch(args []string) error {
	if len(args) >= 2 && args[0] == "init" {
		return initialise(args[1:])
	}
	if len(args) == 2 && args[0] == "run" {
		return run(args[1])
	}
	return errors.New("init HOME... or run SETTINGS")
}

func initialise(homes []string) error {
	ids := make([]p2p.ID, len(homes))
	validators := make([]types.GenesisValidator, len(homes))
	for index, home := range homes {
		c := configuration(settings{Home: home})
		config.EnsureRoot(home)
		validator, err := loadValidator(c)
		if err != nil {
			return err
		}
		validator.Save()
		key, err := p2p.LoadOrGenNodeKey(c.NodeKeyFile())
		if err != nil {
			return err
		}
		ids[index] = key.ID()
		public, err := validator.GetPubKey()
		if err != nil {
			return err
		}
		validators[index] = types.GenesisValidator{Address: public.Address(), PubKey: public, Power: 1}
	}
	genesis := types.GenesisDoc{
		ChainID:         "bench",
		GenesisTime:     time.Now(),
		InitialHeight:   1,
		ConsensusParams: types.DefaultConsensusParams(),
		Validators:      validators,
	}
	for _, home := range homes {
		if err := genesis.SaveAs(configuration(settings{Home: home}).GenesisFile()); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(ids)
}

func loadValidator(c *config.Config) (*privval.FilePV, error) {
	return privval.LoadOrGenFilePV(c.PrivValidatorKeyFile(), c.PrivValidatorStateFile(), func() (crypto.PrivKey, error) {
		return ed25519.GenPrivKey(), nil
	})
}

func run(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	c := configuration(s)
	validator, err := loadValidator(c)
	if err != nil {
		return err
	}
	key, err := p2p.LoadOrGenNodeKey(c.NodeKeyFile())
	if err != nil {
		return err
	}
	// as the node itself runs an application in its own process; tuned: the application needs no lock
	creator := proxy.NewConnSyncLocalClientCreator(&application{})
	if s.Tuned {
		creator = proxy.NewUnsyncLocalClientCreator(&application{})
	}
	logger := log.NewFilter(log.NewTMLogger(log.NewSyncWriter(os.Stderr)), log.AllowError())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// the parent process has its other end
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	n, err := node.NewNode(ctx, c, validator, key, creator, node.DefaultGenesisDocProviderFunc(c),
		config.DefaultDBProvider, node.DefaultMetricsProvider(c.Instrumentation), logger)
	if err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	if err := n.Stop(); err != nil {
		return err
	}
	n.Wait()
	return nil
}
