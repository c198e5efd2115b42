/** A program of SPIRE that is built from its published module. */
export interface Published {
  readonly name: string;
  readonly module: string;
  readonly version: string;
  /** Checksum of the module (`h1:`); its own go.sum has those of its dependencies. */
  readonly sum: string;
  /** Folder of the main package. */
  readonly folder: string;
  /** Whether it needs the C compiler: SQLite is written in C. */
  readonly isPartlyC: boolean;
}

const spire = {
  module: 'github.com/spiffe/spire',
  version: 'v1.13.3',
  sum: 'h1:wDTK8tj8ShO5izjue/OFanVaehmjUxSxHtSWxBY+FJQ=',
};

const controllerManager = {
  module: 'github.com/spiffe/spire-controller-manager',
  version: 'v0.6.3',
  sum: 'h1:TwGDxddP21exUKGvUOuCIr7bKrWnX7uoDoIIUllrGzU=',
};

export const published: readonly Published[] = [
  { name: 'spire-server', ...spire, folder: 'cmd/spire-server', isPartlyC: true },
  { name: 'spire-agent', ...spire, folder: 'cmd/spire-agent', isPartlyC: false },
  { name: 'spire-controller-manager', ...controllerManager, folder: 'cmd', isPartlyC: false },
];

/** The CSI driver with its node components; versions and checksums are in `go/go.mod` and `go/go.sum`. */
export const nodeDriver = 'spiffe-node-driver';

/** CRDs of the controller manager, from its module. */
export const kinds = {
  ...controllerManager,
  folder: 'config/crd/bases',
  files: ['clusterspiffeids', 'clusterfederatedtrustdomains', 'clusterstaticentries'].map(
    (plural) => `spire.spiffe.io_${plural}.yaml`,
  ),
};

/** Tag of all these images, which are for tests only. */
export const tag = 'test';

/** Reference of an image. */
export function imageOf(name: string): string {
  return `chancery.local/${name}:${tag}`;
}
