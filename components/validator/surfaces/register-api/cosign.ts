import { encodeHex } from '#core/encoding/hex.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Signer } from '../../chain/sealing/ports.ts';
import { failure } from '../../errors.ts';

export interface CosignDeps {
  readonly clock: Clock;
  /** Undefined for a register that this validator does not run. */
  findLog(registerId: string): CosignedLog | undefined;
}

interface CosignedLog {
  readonly networkId: string;
  /** Signs with the key that the register names for this validator. */
  readonly signer: Signer;
  /** Root of the log at a size, lower hex. */
  rootAt(size: number): string | undefined;
}

interface Cosignature {
  readonly timeSeconds: number;
  readonly signature: Uint8Array;
}

/**
 * Cosigns the checkpoint of a register: only a size that this validator has decided itself, and only its own root.
 * @throws AppError not_found REGISTER_NOT_FOUND; unavailable CHECKPOINT_UNKNOWN for a size that is not cached;
 * conflict CHECKPOINT_DIVERGENT for a different root
 */
export async function cosign(
  deps: CosignDeps,
  request: { readonly registerId: string; readonly size: number; readonly rootHash: Uint8Array },
): Promise<Cosignature> {
  const { registerId, size, rootHash } = request;
  const log = deps.findLog(registerId);
  if (log === undefined) throw failure('REGISTER_NOT_FOUND');
  const root = log.rootAt(size);
  if (root === undefined)
    throw failure('CHECKPOINT_UNKNOWN', { message: `This validator does not hold the root of size ${size}` });
  if (root !== encodeHex(rootHash))
    throw failure('CHECKPOINT_DIVERGENT', { message: `This validator has another root for size ${size}` });
  const timeSeconds = Math.floor(deps.clock.nowMs() / 1000);
  const { networkId } = log;
  const signature = await log.signer.sign({
    kind: 'cosignature',
    networkId,
    registerId,
    size,
    rootHash,
    timeSeconds,
  });
  return { timeSeconds, signature };
}
