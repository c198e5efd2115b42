import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { findMember, rawText, scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, type Violation } from '#core/errors/errors.ts';
import { validationError } from '#core/errors/validation-codes.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { buildRecord, recordBytes } from '#core/ledger/record.ts';
import {
  boundTxId,
  isTransactionType,
  matchPayload,
  type TransactionEnvelope,
  type TransactionSignature,
  type TransactionType,
} from '#core/ledger/transaction.ts';
import { kindStatus } from '#kit/http/http.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import type {
  Cosignature,
  Possession,
  RegisterView,
  SubmitAnswer,
  UnsealedTransaction,
  ValidatorAddress,
  Validators,
  ValidatorView,
} from '../clients/validators.ts';
import type { DocketBundle, SealedTransaction } from '../ledger/dockets/docket.ts';
import type { TestMember } from './build-docket.ts';
import { testKey } from './keys.ts';

interface Pooled {
  readonly registerId: string;
  readonly txId: string;
  readonly sealed: SealedTransaction;
}

interface FakeValidators extends Validators {
  readonly members: readonly TestMember[];
  /** Pending transactions of a register, in order of arrival. */
  pooled(registerId: string): readonly Pooled[];
  /** Removes transactions from the pool, as sealing does. */
  take(registerId: string, count: number): readonly SealedTransaction[];
  /** Answers the next submission with this instead of accepting it. */
  refuseNext(answer: { status: number; body: unknown; retryAfterSeconds: number }): void;
  /** Fails every call as if no validator were reachable. */
  down: boolean;
  /** `validator register` for each stop request. */
  readonly stopped: string[];
  /** The last action per `validator register`. */
  readonly modes: Map<string, string>;
  /** Additional members of the view that a validator returns, by register. */
  readonly said: Map<string, Partial<RegisterView>>;
  /** Validators that do not answer. */
  readonly away: Set<string>;
  /** Validators that received a submission, in order. */
  readonly submittedTo: string[];
  /** Content of the validators' logs. */
  readonly history: { readonly heights: Map<string, number>; readonly dockets: DocketBundle[] };
  onSeal: (registerId: string) => Promise<number>;
  /** Judges a transaction by the rules of its register, as if it were alone in the next docket. */
  judge: (transaction: Pooled) => Promise<readonly Violation[]>;
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

function typeOf(label: string | undefined): TransactionType {
  return label !== undefined && isTransactionType(label) ? label : 'Action';
}

/** Seals a submission into its record without judging it: the register service judges what these tests send. */
function sealSubmission(bytes: Uint8Array): Pooled {
  const node = scanJson(bytes);
  const wire = toValue(node) as Wire;
  const payloadNode = findMember(node, 'Payload');
  const match = payloadNode && matchPayload(payloadNode, wire.PayloadHash);
  const payload = match?.bytes ?? Buffer.from(payloadNode === undefined ? '' : rawText(payloadNode));
  const envelope: TransactionEnvelope = {
    registerId: wire.RegisterId,
    blueprintId: wire.BlueprintId,
    actionId: wire.ActionId,
    type: typeOf(wire.Metadata['Type']),
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

function refusedFor(errors: readonly Violation[]): SubmitAnswer {
  const { kind, code } = validationError(errors);
  return {
    status: kindStatus[kind],
    body: { code, isValid: false, added: false, errors },
    retryAfterSeconds: 0,
  };
}

function pendingOf({ txId, sealed }: Pooled): UnsealedTransaction {
  const { record } = sealed;
  return { txId, status: 'pending', record, rejectionCode: '', rejectionMessage: '', atMs: 0 };
}

function memberAt(members: readonly TestMember[], { validatorId }: ValidatorAddress): TestMember {
  const member = members.find((one) => one.validatorId === validatorId);
  if (member === undefined)
    throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'no validator is reachable');
  return member;
}

const viewed: RegisterView = { status: 'Running', reason: '', pending: 0, evidence: [] };

function viewOf(
  { validatorId }: ValidatorAddress,
  members: readonly TestMember[],
  heard: readonly TestMember[],
): ValidatorView {
  const heardAtMs = Date.now();
  return {
    validatorId,
    version: '1',
    height: 1,
    round: 0,
    proposer: members[0]?.validatorId ?? '',
    heard: heard.map((one) => ({ validatorId: one.validatorId, heardAtMs })),
    register: viewed,
  };
}

function cosign(
  member: TestMember,
  { registerId, size, rootHash }: Parameters<Validators['cosign']>[1],
): Cosignature {
  const origin = checkpointOrigin(testInstallation, registerId);
  const timeSeconds = 1_795_000_000;
  const message = cosignatureBytes(checkpointBody({ origin, size, rootHash }), timeSeconds);
  return { timeSeconds, signature: member.key.signer.sign(message) };
}

function prove({ validatorId, key }: TestMember, registerId: string): Possession {
  const { publicKey, algorithm, signer } = key;
  const signature = signer.sign(possessionBytes({ registerId, validatorId, publicKey }));
  return { validatorId, publicKey, algorithm, signature };
}

/** The key that follows another one; the same for every validator. */
export function nextKey(after: string): TestMember['key'] {
  return testKey(100 + ((decodeBase64Any(after)[0] ?? 0) % 90));
}

/** Content of the logs, the same for every validator. */
function historyOf(
  history: () => FakeValidators['history'],
  answer: (at: ValidatorAddress) => void,
): Pick<Validators, 'heights' | 'readDockets'> {
  return {
    async heights(at) {
      answer(at);
      return history().heights;
    },
    async *readDockets(at, { registerId, from }) {
      answer(at);
      for (const bundle of history().dockets)
        if (bundle.header.registerId === registerId && bundle.header.docketNumber >= from) yield bundle;
    },
  };
}

/** The signatures of validators. */
function keysOf(
  members: readonly TestMember[],
  answer: (at: ValidatorAddress) => void,
): Pick<Validators, 'cosign' | 'provePossession'> {
  return {
    async cosign(at, request) {
      answer(at);
      return cosign(memberAt(members, at), request);
    },
    async provePossession(at, registerId, after) {
      answer(at);
      const member = memberAt(members, at);
      return prove(after === undefined ? member : { ...member, key: nextKey(after) }, registerId);
    },
  };
}

const statuses = { start: 'Running', stop: 'Stopped', pause: 'Paused', resume: 'Running' } as const;

/** The validators of an installation as this component sees them: a pool in memory, with proofs of possession. */
export function fakeValidators(members: readonly TestMember[]): FakeValidators {
  const pool: Pooled[] = [];
  /** Ids of transactions that left the pool: sealed. */
  const taken = new Set<string>();
  const refusals: { status: number; body: unknown; retryAfterSeconds: number }[] = [];
  const fake: FakeValidators = {
    members,
    down: false,
    stopped: [],
    modes: new Map(),
    said: new Map(),
    away: new Set(),
    submittedTo: [],
    history: { heights: new Map(), dockets: [] },
    onSeal: async () => 0,
    judge: async () => [],
    pooled: (registerId) => pool.filter((one) => one.registerId === registerId),
    take(registerId, count) {
      const sealing = fake.pooled(registerId).slice(0, count);
      for (const one of sealing) {
        pool.splice(pool.indexOf(one), 1);
        taken.add(one.txId);
      }
      return sealing.map((one) => one.sealed);
    },
    refuseNext: (answer) => void refusals.push(answer),
    async submit(at, bytes) {
      answer(at);
      fake.submittedTo.push(at.validatorId);
      const refused = refusals.shift();
      if (refused !== undefined) return refused;
      const transaction = sealSubmission(bytes);
      const found = await fake.judge(transaction);
      if (found.length > 0) return refusedFor(found);
      const known = taken.has(transaction.txId) || pool.some((one) => one.txId === transaction.txId);
      if (!known) pool.push(transaction);
      return { status: 200, body: { isValid: true, added: !known }, retryAfterSeconds: 0 };
    },
    async find(at, registerId, txIds) {
      answer(at);
      return fake
        .pooled(registerId)
        .filter((one) => txIds.includes(one.txId))
        .map(pendingOf);
    },
    async listPending(at, registerId, limit) {
      answer(at);
      const waiting = fake.pooled(registerId);
      return { items: waiting.slice(0, limit).map(pendingOf), total: waiting.length };
    },
    async seal(at, { registerId }) {
      answer(at);
      if (fake.pooled(registerId).length === 0) return { outcome: 'nothing_pending' };
      return { outcome: 'sealed', docketNumber: await fake.onSeal(registerId) };
    },
    async view(at, registerId) {
      answer(at);
      const heard = members.filter(
        (one) => one.validatorId !== at.validatorId && !fake.away.has(one.validatorId),
      );
      const status = fake.modes.get(`${at.validatorId} ${registerId}`) ?? 'Running';
      const current = { ...viewed, status, pending: fake.pooled(registerId).length };
      return { ...viewOf(at, members, heard), register: { ...current, ...fake.said.get(at.validatorId) } };
    },
    ...keysOf(members, answer),
    ...historyOf(() => fake.history, answer),
    async act(at, registerId, act) {
      answer(at);
      if (act === 'stop') fake.stopped.push(`${at.validatorId} ${registerId}`);
      fake.modes.set(`${at.validatorId} ${registerId}`, statuses[act]);
      return { status: statuses[act] };
    },
  };
  function answer({ validatorId }: ValidatorAddress): void {
    if (fake.down || fake.away.has(validatorId))
      throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'no validator is reachable');
  }
  return fake;
}
