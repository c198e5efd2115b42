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

/** A signing component with the guard of the real one: one message for each (register, height, round, step). */
export function fakeSigner(key: TestKey, validatorId: string): FakeSigner {
  const guard = new Map<string, string>();
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

function refuseDoubleSign(
  guard: Map<string, string>,
  { message }: Extract<SignerRequest, { kind: 'consensus' }>,
  bytes: Uint8Array,
): void {
  const place = `${message.registerId}/${message.height}/${message.round}/${message.type}`;
  const text = Buffer.from(bytes).toString('hex');
  const before = guard.get(place);
  if (before !== undefined && before !== text) {
    throw new AppError('conflict', 'DOUBLE_SIGN_REFUSED', 'Something else was signed here');
  }
  guard.set(place, text);
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
