/** One X.509-SVID with its key and the bundle of its trust domain, as PEM. */
export interface Svid {
  readonly id: string;
  /** PKCS#8 private key, PEM. */
  readonly key: string;
  /** Leaf first, then intermediates, PEM. */
  readonly cert: string;
  /** The trust domain's authorities, PEM. */
  readonly ca: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/** This process's identity; a TlsSource for every listener and client. */
export interface Workload {
  readonly id: string;
  readonly trustDomain: string;
  current(): Svid;
  /** Calls back after each new SVID or bundle; returns the function that unsubscribes. */
  onRotate(callback: () => void): () => void;
  stop(): void;
}

/** Credentials that a ServiceAccount presents to an issuer, and the authorities by which it verifies the issuer. */
export interface IssuerCredentials {
  /** ServiceAccount token for the issuer's audience. */
  readonly token: string;
  /** PEM of the installation's authorities. */
  readonly ca: string;
}

/**
 * Both as files that are read at each use, because the kubelet replaces them; or as a function that is called at each
 * use.
 */
export type IssuerCredentialSource =
  | { readonly tokenFile: string; readonly caFile: string }
  | { readonly credentials: () => Promise<IssuerCredentials> };

/** The issuer of an installation, which gives SVIDs for ServiceAccount tokens. */
export type IssuerSource = IssuerCredentialSource & {
  /** `https://host:port`. */
  readonly url: string;
  /** The trust domain; SVIDs of another one are refused. */
  readonly installation: string;
};

/** Source of SVIDs: the SPIFFE Workload API on a unix socket, with or without the prefix `unix:`, or an issuer. */
export type WorkloadSource = { readonly socket: string } | { readonly issuer: IssuerSource };
