import { spkiOfKey } from '#core/crypto/signature-key.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import {
  boundTxId,
  payloadHash,
  signingDigest,
  type TransactionEnvelope,
  type TransactionType,
} from '#core/ledger/transaction.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { refusal } from '../errors.ts';
import type { Issuers } from '../issuer/signing/issuers.ts';
import type { SignedTransaction } from '../ledger/registers.ts';
import { type CredentialStatus, entryOf } from '../protocol/statuses.ts';
import type { TrustSources } from '../verifier/trust-sources/trust-sources.ts';

export interface SignChangeDeps {
  readonly clock: Clock;
  readonly issuers: Pick<Issuers, 'sign'>;
  readonly sources: Pick<TrustSources, 'findOrganizationKey'>;
}

/** A change of a status, from which a list can be made again. */
interface RecordedChange {
  readonly credentialId: string;
  /** `status_list.uri` of the credential. */
  readonly uri: string;
  readonly index: number;
  readonly status: CredentialStatus;
  readonly changedAt: Date;
}

const TYPE = 'CredentialStatusChange' satisfies TransactionType;

/** The payload of a transaction `CredentialStatusChange`, as canonical JSON. It says nothing about the holder. */
export function changePayload({ credentialId, uri, index, status, changedAt }: RecordedChange): string {
  return canonicalJson({
    credentialId,
    statusList: { uri, idx: index, value: entryOf(status) },
    status,
    changedAt: changedAt.toISOString(),
  });
}

/**
 * Signs a transaction with the key of the issuing organisation that its credentials are signed with.
 * @throws AppError unavailable WALLETS_UNAVAILABLE; unprocessable CERT_KEY_NOT_ELIGIBLE, ISSUER_WALLET_MISMATCH; locked
 * WALLET_LOCKED
 */
export async function signChange(
  { clock, issuers, sources }: SignChangeDeps,
  { registerId, walletAddress, payload }: { registerId: string; walletAddress: string; payload: string },
): Promise<SignedTransaction> {
  const key = await sources.findOrganizationKey(walletAddress);
  if (key === undefined) throw refusal('CERT_KEY_NOT_ELIGIBLE');
  const envelope = {
    registerId,
    type: TYPE,
    payloadHash: payloadHash(JSON.parse(payload)),
    createdAt: formatLedgerTimestamp(clock.nowMicros()),
    metadata: { Type: TYPE },
  } satisfies TransactionEnvelope;
  const publicKey = encodeBase64(spkiOfKey(key));
  const id = boundTxId(envelope, [publicKey]);
  const signature = await issuers.sign(walletAddress, signingDigest(id, envelope.payloadHash));
  return {
    ...envelope,
    id,
    payload,
    sender: walletAddress,
    signature: { publicKey, signatureValue: encodeBase64(signature), algorithm: 'NISTP256' },
  };
}
