import { AppError } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import { operationPayloadSchema } from '#core/ledger/governance/operation.ts';
import { suspensionTransaction } from '#core/ledger/governance/suspension.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import type {
  BatchSignatures,
  KeyChain,
  Signer,
  SignerBatch,
  SignerKey,
  SignerRequest,
} from '../chain/sealing/ports.ts';
import type { TestKey } from './keys.ts';

export interface FakeSigner extends Signer, KeyChain {
  /** False for a component of an earlier version. */
  signsBatches: boolean;
  /** The signed requests; those of a batch one by one. */
  readonly signed: SignerRequest[];
  /** Called before each signature; may throw or wait. */
  before: (request: SignerRequest) => Promise<void> | void;
}

/**
 * A signing component with a guard like the real one: positions of a register only rise, and the messages that were signed last
 * may be repeated.
 */
export function fakeSigner(first: TestKey, validatorId: string, ...later: TestKey[]): FakeSigner {
  const guard = createGuard({ comparesBytes: true });
  const fake: FakeSigner = {
    key: factsOf(first),
    newestKey: factsOf(later.at(-1) ?? first),
    async nextKey(after) {
      const keys = [first, ...later];
      const next = keys[keys.findIndex(({ publicKey }) => publicKey === after) + 1];
      if (next === undefined) throw new AppError('conflict', 'SIGNING_KEYS_EXHAUSTED', 'There is none');
      return factsOf(next);
    },
    signed: [],
    before: () => {},
    async sign(request, publicKey = first.publicKey) {
      await fake.before(request);
      const key = [first, ...later].find((each) => each.publicKey === publicKey);
      if (key === undefined) throw new AppError('not_found', 'SIGNING_KEY_UNKNOWN', 'The key is no own one');
      const bytes = signedBytes(request, key, validatorId);
      if (request.kind === 'consensus') guard([{ message: request.message, bytes }]);
      fake.signed.push(request);
      return key.sign(bytes);
    },
    signsBatches: true,
    async signBatch(batch, publicKey = first.publicKey) {
      const requests = requestsOf(batch);
      for (const request of requests) await fake.before(request);
      if (!fake.signsBatches)
        throw new AppError('invalid', 'INVALID_REQUEST', 'The message has no known type');
      const key = [first, ...later].find((each) => each.publicKey === publicKey);
      if (key === undefined) throw new AppError('not_found', 'SIGNING_KEY_UNKNOWN', 'The key is no own one');
      guard(batch.messages.map((message) => ({ message, bytes: signBytes(message) })));
      fake.signed.push(...requests);
      return batchSignatures(batch, key, validatorId);
    },
  };
  return fake;
}

function factsOf({ publicKey, address }: TestKey): SignerKey {
  return { publicKey, walletAddress: address };
}

/** The messages of a batch as requests, and its attestation. */
export function requestsOf({ messages, attestation }: SignerBatch): SignerRequest[] {
  const requests = messages.map((message) => ({ kind: 'consensus', message }) as const);
  return attestation === undefined ? requests : [...requests, attestation];
}

/** The signatures of a batch by a key, without a guard. */
export function batchSignatures(
  { messages, attestation }: SignerBatch,
  key: TestKey,
  validatorId: string,
): BatchSignatures {
  return {
    messages: messages.map((message) => key.sign(signBytes(message))),
    ...(attestation !== undefined && { attestation: key.sign(signedBytes(attestation, key, validatorId)) }),
  };
}

/** A message and the bytes that its signature covers. */
export interface GuardedMessage {
  readonly message: ConsensusMessage;
  readonly bytes: Uint8Array;
}

interface Position {
  readonly place: readonly [height: number, round: number, step: number];
  readonly text: string;
}

/** Throws AppError conflict DOUBLE_SIGN_REFUSED for messages that conflict with an earlier signature. */
export type Guard = (messages: readonly GuardedMessage[]) => void;

/**
 * The guard of one identity: positions of a register only rise, and the messages that were signed last may be repeated. A batch
 * may begin with such messages and continue above them.
 */
export function createGuard({ comparesBytes }: { readonly comparesBytes: boolean }): Guard {
  const isRepeated = comparesBytes ? isSame : isSamePlace;
  const kept = new Map<string, readonly Position[]>();
  return (messages) => {
    const next = messages.map(positionOf);
    const registerId = messages[0]?.message.registerId ?? '';
    const signed = kept.get(registerId) ?? [];
    const firstNew = next.find((position) => !signed.some((each) => isRepeated(each, position)));
    if (firstNew === undefined) return;
    const last = signed.at(-1);
    if (last !== undefined && !isAbove(firstNew, last)) {
      throw new AppError(
        'conflict',
        'DOUBLE_SIGN_REFUSED',
        'A later position or something else was signed here',
      );
    }
    kept.set(registerId, next);
  };
}

function positionOf({ message, bytes }: GuardedMessage): Position {
  return {
    place: [message.height, message.round, message.type],
    text: Buffer.from(bytes).toString('hex'),
  };
}

function isSame(one: Position, other: Position): boolean {
  return one.text === other.text;
}

function isSamePlace(one: Position, other: Position): boolean {
  return one.place.join() === other.place.join();
}

function isAbove(next: Position, last: Position): boolean {
  for (const [index, part] of next.place.entries()) {
    const before = last.place[index] ?? 0;
    if (part !== before) return part > before;
  }
  return false;
}

/** The bytes that a request's signature covers. */
export function signedBytes(request: SignerRequest, key: TestKey, validatorId: string): Uint8Array {
  switch (request.kind) {
    case 'consensus':
      return signBytes(request.message);
    case 'attestation':
      return voteBytes({ ...request, validatorAddress: key.address });
    case 'cosignature':
      return cosignatureBytes(
        checkpointBody({ ...request, origin: checkpointOrigin(request.networkId, request.registerId) }),
        request.timeSeconds,
      );
    case 'possession':
      return possessionBytes({ registerId: request.registerId, validatorId, publicKey: key.publicKey });
    case 'suspension': {
      const payload = operationPayloadSchema.parse(JSON.parse(Buffer.from(request.payload).toString()));
      const { txId, envelope } = suspensionTransaction(request.registerId, payload, key.publicKey);
      return signingDigest(txId, envelope.payloadHash);
    }
  }
}
