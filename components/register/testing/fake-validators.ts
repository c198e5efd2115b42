import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { findMember, rawText, scanJson, toValue } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import {
  boundTxId,
  matchPayload,
  type TransactionEnvelope,
  type TransactionSignature,
} from '#core/ledger/transaction.ts';
import type { UnsealedTransaction, Validators } from '../clients.ts';
import type { SealedTransaction } from '../dockets/docket.ts';
import type { TestMember } from './build-docket.ts';

interface Pooled {
  readonly registerId: string;
  readonly txId: string;
  readonly sealed: SealedTransaction;
}

export interface FakeValidators extends Validators {
  readonly members: readonly TestMember[];
  /** What waits for a register, in order of arrival. */
  pooled(registerId: string): readonly Pooled[];
  /** Takes transactions out of the pool, as sealing does. */
  take(registerId: string, count: number): readonly SealedTransaction[];
  /** Answers the next submission with this instead of taking it. */
  refuseNext(answer: { status: number; body: unknown; retryAfterSeconds: number }): void;
  /** Ends every call as if nobody listened. */
  down: boolean;
  onSeal: (registerId: string) => Promise<number>;
}

interface Wire {
  readonly TransactionId: string;
  readonly RegisterId: string;
  readonly BlueprintId?: string;
  readonly ActionId?: string;
  readonly PayloadHash: string;
  readonly Signatures: { PublicKey: string; SignatureValue: string; Algorithm: 'ED25519' }[];
  readonly CreatedAt: string;
  readonly ExpiresAt?: string;
  readonly PreviousTransactionId?: string;
  readonly Recipients?: string[];
  readonly Metadata: Record<string, string>;
}

/** A submission sealed into its record, without judging it: what these tests send is judged by the register. */
export function sealSubmission(bytes: Uint8Array): Pooled {
  const node = scanJson(bytes);
  const wire = toValue(node) as Wire;
  const payloadNode = findMember(node, 'Payload');
  const match = payloadNode && matchPayload(payloadNode, wire.PayloadHash);
  const payload = match?.bytes ?? Buffer.from(payloadNode === undefined ? '' : rawText(payloadNode));
  const envelope: TransactionEnvelope = {
    registerId: wire.RegisterId,
    blueprintId: wire.BlueprintId,
    actionId: wire.ActionId,
    type: wire.Metadata['Type'] === 'Genesis' ? 'Genesis' : 'Action',
    payloadHash: wire.PayloadHash,
    previousTransactionId: wire.PreviousTransactionId,
    createdAt: wire.CreatedAt,
    expiresAt: wire.ExpiresAt,
    recipients: wire.Recipients,
    metadata: wire.Metadata,
  };
  const signatures: TransactionSignature[] = wire.Signatures.map((one) => ({
    publicKey: one.PublicKey,
    signatureValue: one.SignatureValue,
    algorithm: one.Algorithm,
  }));
  const key = signatures[0]?.publicKey ?? '';
  const record = buildRecord({
    envelope,
    txId: wire.TransactionId,
    payloadSize: payload.length,
    senderAddress: walletAddress('ED25519', parsePublicKey('ED25519', key)),
    signatures,
    bound: boundTxId(envelope, [key]) === wire.TransactionId,
  });
  const payloadHashForm = match?.form ?? 'jcs';
  return {
    registerId: wire.RegisterId,
    txId: wire.TransactionId,
    sealed: { record: recordBytes(record), payload, payloadHashForm },
  };
}

/** The validators of an installation as this component sees them: a pool in memory, keys that prove themselves. */
export function fakeValidators(members: readonly TestMember[]): FakeValidators {
  const pool: Pooled[] = [];
  const refusals: { status: number; body: unknown; retryAfterSeconds: number }[] = [];
  const pendingOf = (one: Pooled): UnsealedTransaction => ({
    txId: one.txId,
    status: 'pending',
    record: one.sealed.record,
    rejectionCode: '',
    rejectionMessage: '',
    atMs: 0,
  });
  const fake: FakeValidators = {
    members,
    down: false,
    onSeal: async () => 0,
    pooled: (registerId) => pool.filter((one) => one.registerId === registerId),
    take(registerId, count) {
      const taken = fake.pooled(registerId).slice(0, count);
      for (const one of taken) pool.splice(pool.indexOf(one), 1);
      return taken.map((one) => one.sealed);
    },
    refuseNext: (answer) => void refusals.push(answer),
    async submit(_at, bytes) {
      answer();
      const refused = refusals.shift();
      if (refused !== undefined) return refused;
      const transaction = sealSubmission(bytes);
      const known = pool.some((one) => one.txId === transaction.txId);
      if (!known) pool.push(transaction);
      return { status: 200, body: { isValid: true, added: !known }, retryAfterSeconds: 0 };
    },
    async find(_at, registerId, txIds) {
      answer();
      return fake
        .pooled(registerId)
        .filter((one) => txIds.includes(one.txId))
        .map(pendingOf);
    },
    async listPending(_at, registerId, limit) {
      answer();
      const waiting = fake.pooled(registerId);
      return { items: waiting.slice(0, limit).map(pendingOf), total: waiting.length };
    },
    async seal(_at, { registerId }) {
      answer();
      if (fake.pooled(registerId).length === 0) return { outcome: 'nothing_pending' };
      return { outcome: 'sealed', docketNumber: await fake.onSeal(registerId) };
    },
    async provePossession({ validatorId }, registerId) {
      answer();
      const member = members.find((one) => one.validatorId === validatorId);
      if (member === undefined) throw new AppError('unavailable', 'UNAVAILABLE', 'nobody there');
      const { publicKey, algorithm, signer } = member.key;
      const signature = signer.sign(possessionBytes({ registerId, validatorId, publicKey }));
      return { validatorId, publicKey, algorithm, signature };
    },
  };
  function answer(): void {
    if (fake.down) throw new AppError('unavailable', 'UNAVAILABLE', 'nobody there');
  }
  return fake;
}
