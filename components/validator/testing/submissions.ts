import { encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { defaultCryptoPolicy, genesisEnvelope, parseControlRecord } from '#core/ledger/control-record.ts';
import { attestationBytes, attestationDigest } from '#core/ledger/owner-attestation.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { boundTxId, payloadHash, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';
import type { TestKey } from './keys.ts';

export interface Draft {
  readonly registerId: string;
  readonly key: TestKey;
  readonly payload?: unknown;
  readonly previous?: string | undefined;
  readonly createdAtMs: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly blueprintId?: string;
  readonly actionId?: string;
  /** Replaces members of the finished submission; undefined leaves one out. */
  readonly tamper?: Record<string, unknown>;
}

export interface SignedSubmission {
  readonly txId: string;
  readonly text: string;
}

/** A signed submission in the specification's shape. */
export function signedSubmission(draft: Draft): SignedSubmission {
  const payload = draft.payload ?? { note: 'hello' };
  const envelope: TransactionEnvelope = {
    registerId: draft.registerId,
    blueprintId: draft.blueprintId ?? 'loan',
    actionId: draft.actionId ?? '0',
    type: 'Action',
    payloadHash: payloadHash(payload),
    previousTransactionId: draft.previous,
    createdAt: formatLedgerTimestamp(BigInt(draft.createdAtMs) * 1000n),
    metadata: draft.metadata ?? {},
  };
  return finish(envelope, canonicalJson(payload), draft.key, draft.tamper ?? {});
}

function finish(
  envelope: TransactionEnvelope,
  payload: string,
  key: TestKey,
  tamper: Record<string, unknown>,
): SignedSubmission {
  const txId = boundTxId(envelope, [key.publicKey]);
  const signature = key.sign(signingDigest(txId, envelope.payloadHash));
  const members = {
    TransactionId: txId,
    RegisterId: envelope.registerId,
    BlueprintId: envelope.blueprintId,
    ActionId: envelope.actionId,
    PayloadHash: envelope.payloadHash,
    Signatures: [{ PublicKey: key.publicKey, SignatureValue: encodeBase64(signature), Algorithm: 'ED25519' }],
    CreatedAt: envelope.createdAt,
    PreviousTransactionId: envelope.previousTransactionId,
    Metadata: envelope.metadata,
    ...tamper,
  };
  const text = JSON.stringify(members);
  const withPayload = 'Payload' in tamper ? text : `${text.slice(0, -1)},"Payload":${payload}}`;
  return { txId, text: withPayload };
}

export interface GenesisDraft {
  readonly registerId: string;
  readonly owner: TestKey;
  readonly system: TestKey;
  readonly validators: readonly { readonly validatorId: string; readonly key: TestKey }[];
  readonly createdAtMs: number;
  readonly policy?: unknown;
}

/** The submission that begins a register. */
export function genesisSubmission(draft: GenesisDraft): SignedSubmission {
  const { registerId, owner, system } = draft;
  const createdAt = formatLedgerTimestamp(BigInt(draft.createdAtMs) * 1000n);
  const subject = `did:platform:w:${owner.address}`;
  const data = { role: 'Owner', subject, registerId, registerName: 'Loans', grantedAt: createdAt } as const;
  const record = parseControlRecord({
    registerId,
    name: 'Loans',
    purpose: 'General',
    createdAt,
    attestations: [
      {
        role: 'Owner',
        subject,
        publicKey: owner.publicKey,
        signature: encodeBase64(owner.sign(attestationDigest(attestationBytes(data)))),
        algorithm: 'ED25519',
        grantedAt: createdAt,
      },
    ],
    cryptoPolicy: defaultCryptoPolicy(createdAt, false),
    registerPolicy: parsePolicy(draft.policy ?? {}),
    validators: {
      validators: draft.validators.map(({ validatorId, key }) => ({
        validatorId,
        publicKey: key.publicKey,
        algorithm: 'ED25519',
        derivationContext: 'platform:docket-signing',
        status: 'Active',
        authorizedAt: createdAt,
        proofOfPossession: encodeBase64(
          key.sign(possessionBytes({ registerId, validatorId, publicKey: key.publicKey })),
        ),
      })),
      requiredSignatures: Math.floor((2 * draft.validators.length) / 3) + 1,
      version: 1,
    },
  });
  const envelope = genesisEnvelope({
    record,
    payloadHash: payloadHash(record),
    organizationId: 'org',
    systemWalletAddress: system.address,
    createdAt,
  });
  return finish(envelope, canonicalJson(record), system, {});
}
