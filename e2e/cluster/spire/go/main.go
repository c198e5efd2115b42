// Command node-driver is the CSI driver of SPIFFE on one node of a test cluster. The driver itself is the published one;
// this program finds the node's kubelet, mounts where that kubelet looks, and registers the driver with it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/go-logr/zapr"
	"github.com/spiffe/spiffe-csi/pkg/driver"
	"github.com/spiffe/spiffe-csi/pkg/server"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

const (
	driverName = "csi.spiffe.io"
	// tells the program that it has entered the kubelet's mount namespace already, and where the kubelet keeps its files
	rootVariable = "KUBELET_ROOT"
)

func main() {
	if err := run(os.Getenv("NODE_NAME"), os.Getenv("SOCKETS")); err != nil {
		fmt.Fprintln(os.Stderr, "node-driver:", err)
		os.Exit(1)
	}
}

func run(node, sockets string) error {
	if root := os.Getenv(rootVariable); root != "" {
		return serve(node, root, filepath.Join(sockets, node))
	}
	found, err := findKubelet("/proc", node)
	if err != nil {
		return err
	}
	return enter(found)
}

// enter starts this program again in the mount namespace of the kubelet. What is mounted there can be seen by the kubelet
// whether or not its host shares mounts with containers.
func enter(found kubelet) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", found.pid))
	if err != nil {
		return err
	}
	// a mount namespace can be left only by a thread that shares no working directory
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	// the namespace does not have this container's files, so the program goes along as an open one
	env := append(os.Environ(), rootVariable+"="+found.root)
	return unix.Exec(fmt.Sprintf("/proc/self/fd/%d", self.Fd()), os.Args, env)
}

// serve answers the kubelet on the driver's socket and on the one by which it finds drivers.
func serve(node, root, sockets string) error {
	plugin := filepath.Join(root, "plugins", driverName)
	for _, folder := range []string{plugin, sockets} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	zapLog, err := zap.NewProduction()
	if err != nil {
		return err
	}
	log := zapr.NewLogger(zapLog)
	csi, err := driver.New(driver.Config{Log: log, NodeID: node, PluginName: driverName, WorkloadAPISocketDir: sockets})
	if err != nil {
		return err
	}
	socket := filepath.Join(plugin, "csi.sock")
	failed := make(chan error, 2)
	go func() { failed <- server.Run(server.Config{Log: log, CSISocketPath: socket, Driver: csi}) }()
	go func() { failed <- register(root, socket) }()
	return <-failed
}
