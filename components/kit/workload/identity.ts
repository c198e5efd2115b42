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
  /** Calls back after each new SVID or bundle; returns the function that ends it. */
  onRotate(callback: () => void): () => void;
  stop(): void;
}
