/** A key of the wallet service. `publicKey` is standard base64: 32 raw bytes for Ed25519, SPKI DER otherwise. */
export interface WalletKey {
  readonly publicKey: string;
  readonly algorithm: string;
  readonly walletAddress: string;
}

/** The key with which a wallet of the wallet service attests in a roster. */
interface AttestationKey {
  /** id or address, as in the request */
  readonly wallet: string;
  readonly walletAddress: string;
  /** empty for the wallet's own key */
  readonly derivationContext: string;
  readonly keyAddress: string;
}

export interface Signed {
  readonly signature: Uint8Array;
  readonly key: WalletKey;
}

interface DigestRequest {
  readonly walletAddress: string;
  readonly digest: Uint8Array;
  /** empty for the primary key */
  readonly derivationContext: string;
  readonly subjectToken: string;
}

interface ControlRequest {
  readonly registerId: string;
  readonly transactionId: string;
  readonly payloadHash: string;
  readonly transactionType: string;
}

interface OwnershipRequest {
  readonly registerId: string;
  readonly registerName: string;
  readonly grantedAt: string;
}

/** The wallet service, as this component uses it. Refusals and outages are AppErrors. */
export interface Wallets {
  findKey(walletAddress: string): Promise<WalletKey | undefined>;
  subjectWallets(subjectToken: string): Promise<readonly WalletKey[]>;
  /** Looks up by wallet id or address; unknown wallets are left out. */
  attestationKeys(wallets: readonly string[]): Promise<readonly AttestationKey[]>;
  organizationWallet(organizationId: string): Promise<WalletKey | undefined>;
  signDigest(request: DigestRequest): Promise<Signed>;
  /** The register-control key of the installation. */
  systemKey(): Promise<WalletKey>;
  signControl(request: ControlRequest): Promise<Signed>;
  /** The installation attests as the owner of a new register. */
  signOwnership(request: OwnershipRequest): Promise<Signed>;
  signCheckpoint(registerId: string, body: string): Promise<Signed>;
}
