module chancery.dev/e2e/spire

go 1.26.0

require (
	github.com/go-logr/zapr v1.3.0
	github.com/spiffe/spiffe-csi v0.2.6
	go.uber.org/zap v1.27.0
	golang.org/x/sys v0.41.0
	google.golang.org/grpc v1.79.3
	k8s.io/kubelet v0.36.3
)

require (
	github.com/container-storage-interface/spec v1.9.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/net v0.49.0 // indirect
	golang.org/x/text v0.33.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260128011058-8636f8732409 // indirect
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af // indirect
)
