package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration tells a kubelet of the driver, as the kubelet's plugin watcher asks.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	socket string
	failed chan<- error
}

func (r registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              driverName,
		Endpoint:          r.socket,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registration) NotifyRegistrationStatus(
	_ context.Context, status *registerapi.RegistrationStatus,
) (*registerapi.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		r.failed <- errors.New("the kubelet refuses the driver: " + status.Error)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// register serves the socket in the folder that the kubelet watches, until it fails or the kubelet refuses the driver.
func register(root, socket string) error {
	path := filepath.Join(root, "plugins_registry", driverName+"-reg.sock")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	answering := grpc.NewServer()
	registerapi.RegisterRegistrationServer(answering, registration{socket: socket, failed: failed})
	go func() { failed <- answering.Serve(listener) }()
	return <-failed
}
