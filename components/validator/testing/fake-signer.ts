import { AppError } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { signBytes } from '#core/ledger/consensus.ts';
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
  const guard = new Map<string, Position>();
  const fake: FakeSigner = {
    key: { publicKey: key.publicKey, walletAddress: key.address },
    signed: [],
    before: () => {},
    async sign(request) {
      await fake.before(request);
      const bytes = bytesOf(request, key, validatorId);
      if (request.kind === 'consensus') refuseDoubleSign(guard, request, bytes);
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

function refuseDoubleSign(
  guard: Map<string, Position>,
  { message }: Extract<SignerRequest, { kind: 'consensus' }>,
  bytes: Uint8Array,
): void {
  const place = [message.height, message.round, message.type] as const;
  const text = Buffer.from(bytes).toString('hex');
  const last = guard.get(message.registerId);
  if (last !== undefined && !mayFollow(last, { place, text })) {
    throw new AppError(
      'conflict',
      'DOUBLE_SIGN_REFUSED',
      'A later position or something else was signed here',
    );
  }
  guard.set(message.registerId, { place, text });
}

function mayFollow(last: Position, next: Position): boolean {
  for (const [index, part] of next.place.entries()) {
    const before = last.place[index] ?? 0;
    if (part !== before) return part > before;
  }
  return last.text === next.text;
}

function bytesOf(request: SignerRequest, key: TestKey, validatorId: string): Uint8Array {
  switch (request.kind) {
    case 'consensus':
      return signBytes(request.message);
    case 'attestation':
      return voteBytes({ ...request, validatorAddress: key.address });
    case 'possession':
      return possessionBytes({ registerId: request.registerId, validatorId, publicKey: key.publicKey });
  }
}
