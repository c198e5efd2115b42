import { AppError } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import { operationPayloadSchema } from '#core/ledger/governance/operation.ts';
import { suspensionTransaction } from '#core/ledger/governance/suspension.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import type { KeyChain, Signer, SignerKey, SignerRequest } from '../chain/sealing/ports.ts';
import type { TestKey } from './keys.ts';

export interface FakeSigner extends Signer, KeyChain {
  readonly signed: SignerRequest[];
  /** Called before each signature; may throw or wait. */
  before: (request: SignerRequest) => Promise<void> | void;
}

/** A signing component with a guard like the real one: positions of a register only rise, and the last one may be repeated. */
export function fakeSigner(first: TestKey, validatorId: string, ...later: TestKey[]): FakeSigner {
  const guard = createGuard();
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
      if (request.kind === 'consensus') guard(request.message, bytes);
      fake.signed.push(request);
      return key.sign(bytes);
    },
  };
  return fake;
}

function factsOf({ publicKey, address }: TestKey): SignerKey {
  return { publicKey, walletAddress: address };
}

interface Position {
  readonly place: readonly [height: number, round: number, step: number];
  readonly text: string;
}

/** Throws AppError conflict DOUBLE_SIGN_REFUSED for a message that conflicts with an earlier signature. */
export type Guard = (message: ConsensusMessage, bytes: Uint8Array) => void;

/** The guard of one identity: positions of a register only rise, and the last one may be repeated. */
export function createGuard(): Guard {
  const positions = new Map<string, Position>();
  return (message, bytes) => {
    const place = [message.height, message.round, message.type] as const;
    const text = Buffer.from(bytes).toString('hex');
    const last = positions.get(message.registerId);
    if (last !== undefined && !mayFollow(last, { place, text })) {
      throw new AppError(
        'conflict',
        'DOUBLE_SIGN_REFUSED',
        'A later position or something else was signed here',
      );
    }
    positions.set(message.registerId, { place, text });
  };
}

function mayFollow(last: Position, next: Position): boolean {
  for (const [index, part] of next.place.entries()) {
    const before = last.place[index] ?? 0;
    if (part !== before) return part > before;
  }
  return last.text === next.text;
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
