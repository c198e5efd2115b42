import { AppError } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import type { Signer, SignerRequest } from '../sealing/ports.ts';
import type { TestKey } from './keys.ts';

export interface FakeSigner extends Signer {
  readonly signed: SignerRequest[];
  /** Called before each signature; may throw or wait. */
  before: (request: SignerRequest) => Promise<void> | void;
}

/** A signing component with the guard of the real one: positions of a register only rise, the last one may be repeated. */
export function fakeSigner(key: TestKey, validatorId: string): FakeSigner {
  const guard = createGuard();
  const fake: FakeSigner = {
    key: { publicKey: key.publicKey, walletAddress: key.address },
    signed: [],
    before: () => {},
    async sign(request) {
      await fake.before(request);
      const bytes = signedBytes(request, key, validatorId);
      if (request.kind === 'consensus') guard(request.message, bytes);
      fake.signed.push(request);
      return key.sign(bytes);
    },
  };
  return fake;
}

interface Position {
  readonly place: readonly [height: number, round: number, step: number];
  readonly text: string;
}

/** Throws AppError conflict DOUBLE_SIGN_REFUSED for what may not be signed after what was signed before. */
export type Guard = (message: ConsensusMessage, bytes: Uint8Array) => void;

/** The guard of one identity: positions of a register only rise, the last one may be repeated. */
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

/** The bytes that a request asks a signature over. */
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
  }
}
