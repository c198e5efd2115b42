import type { ReadRequest } from '../presenter.ts';
import type { WalletKey } from '../wallet.ts';

/** The keys of one wallet. */
export interface SimulatedWallet {
  /** One more than a batch takes. */
  readonly keys: readonly WalletKey[];
  readonly dpopKey: WalletKey;
  /** The key of the attested instance. */
  readonly instance: WalletKey;
}

/** What the service must know of the objects that it made; each changes with the steps that the service accepts. */

export interface ModelOffer {
  readonly id: string;
  /** Pre-authorized code, or `issuer_state` in haip-1.0. */
  readonly code: string;
  readonly txCode: string | undefined;
  readonly type: number;
  readonly configurationId: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly validitySeconds: number | undefined;
  /** The wallet whose first key alone gets the credential. */
  readonly boundTo: SimulatedWallet | undefined;
  readonly expiresAtMs: number;
  status: 'Pending' | 'Exchanged' | 'Expired';
  wrongTxCodes: number;
}

/** An authorization request that a wallet pushed. */
export interface ModelPushed {
  readonly requestUri: string;
  readonly offer: ModelOffer;
  readonly verifier: string;
  /** The wallet whose DPoP key alone gets tokens for the code. */
  readonly boundTo: SimulatedWallet | undefined;
  readonly expiresAtMs: number;
  isGone: boolean;
}

/** An authorization code. */
export interface ModelCode {
  readonly code: string;
  readonly offer: ModelOffer;
  readonly verifier: string;
  readonly boundTo: SimulatedWallet | undefined;
  readonly expiresAtMs: number;
  isGone: boolean;
}

export interface ModelToken {
  readonly text: string;
  readonly offer: ModelOffer;
  readonly expiresAtMs: number;
  readonly wallet: SimulatedWallet;
  /** Whether it is bound to the DPoP key of its wallet. */
  readonly isBound: boolean;
  issued: number;
  isEnded: boolean;
}

export interface ModelRefresh {
  readonly text: string;
  readonly offer: ModelOffer;
  readonly wallet: SimulatedWallet;
  readonly expiresAtMs: number;
  isUsed: boolean;
}

export interface ModelNonce {
  readonly text: string;
  readonly createdAtMs: number;
  isUsed: boolean;
}

export interface ModelCredential {
  readonly id: string;
  readonly compact: string;
  readonly key: WalletKey;
  readonly offer: ModelOffer;
  /** Seconds since the epoch; undefined without an end. */
  readonly expiresAt: number | undefined;
  status: 'Active' | 'Suspended' | 'Revoked';
}

export interface ModelRequest {
  readonly id: string;
  readonly creator: string;
  readonly type: number;
  readonly read: ReadRequest;
  readonly expiresAtMs: number;
  /** The first answer that was taken. */
  verdict:
    | {
        readonly state: 'Verified' | 'Failed';
        readonly atMs: number;
        readonly claims: Readonly<Record<string, unknown>>;
      }
    | undefined;
}

/** Credentials of one offer or token at most. */
export const MOST_CREDENTIALS = 10;
export const MOST_WRONG_TX_CODES = 5;
export const TOKEN_MS = 300_000;
export const NONCE_MS = 300_000;
export const PUSHED_MS = 300_000;
export const CODE_MS = 60_000;
export const REFRESH_MS = 30 * 86_400_000;
export const CLAIMS_MS = 15 * 60_000;
/** Leeway of a verifier for clocks. */
export const LEEWAY_SECONDS = 60;

export function isOpen({ status, expiresAtMs }: ModelOffer, nowMs: number): boolean {
  return status === 'Pending' && expiresAtMs > nowMs;
}

/** Counts a wrong transaction code; the fifth ends the offer. */
export function countWrongTxCode(offer: ModelOffer): void {
  offer.wrongTxCodes += 1;
  if (offer.wrongTxCodes >= MOST_WRONG_TX_CODES) offer.status = 'Expired';
}

const following: Readonly<Record<StatusVerb, readonly ModelCredential['status'][]>> = {
  suspend: ['Active'],
  reinstate: ['Suspended'],
  revoke: ['Active', 'Suspended'],
};
export type StatusVerb = 'suspend' | 'reinstate' | 'revoke';

export const STATUS_AFTER = { suspend: 'Suspended', reinstate: 'Active', revoke: 'Revoked' } as const;

/** Whether a credential of this status takes the change. */
export function takesChange({ status }: ModelCredential, verb: StatusVerb): boolean {
  return following[verb].includes(status);
}
