import { AppError, isAppError } from '#core/errors/errors.ts';
import type { ConsensusMessage } from '#core/ledger/consensus.ts';
import type { Random } from '#kit/testing/random.ts';
import type { Signer, SignerRequest } from '../../chain/sealing/ports.ts';
import { createGuard, type Guard, signedBytes } from '../fake-signer.ts';
import type { TestKey } from '../keys.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

export interface SigningOptions {
  readonly eventQueue: EventQueue;
  readonly random: Random;
  /** A component that signs any request. */
  readonly unguarded?: boolean;
  /** A request was refused: by the guard, or because another holder of the identity has taken over. */
  onRefused(code: string): void;
  /** Called for every signature before it is released. */
  onSigned(validatorId: string, message: ConsensusMessage, bytes: Uint8Array): void;
}

interface Identity {
  readonly key: TestKey;
  readonly guard: Guard;
  epoch: number;
}

/** The signing component: one guard and one fencing epoch per identity, unaffected by crashes of validators. */
export class Signing {
  readonly #options: SigningOptions;
  readonly #identities = new Map<string, Identity>();
  /** Until then no request is answered. */
  #silentUntilMs = 0;

  constructor(options: SigningOptions) {
    this.#options = options;
  }

  add(validatorId: string, key: TestKey, isGuarded: boolean): void {
    const isLoose = !isGuarded || this.#options.unguarded === true;
    this.#identities.set(validatorId, { key, guard: isLoose ? () => {} : createGuard(), epoch: 0 });
  }

  beSilent(forMs: number): void {
    this.#silentUntilMs = this.#options.eventQueue.elapsedMs + forMs;
  }

  /** Opens the stream of a starting validator, which holds the identity until another process opens one. */
  open(validatorId: string, handle: ProcessHandle): Signer {
    const { eventQueue, random } = this.#options;
    const identity = this.#identities.get(validatorId);
    if (identity === undefined) throw new Error(`${validatorId} has no key`);
    identity.epoch += 1;
    const { epoch, key } = identity;
    let lastArrivalMs = 0;
    let lastAnswerMs = 0;
    return {
      key: { publicKey: key.publicKey, walletAddress: key.address },
      sign: (request) =>
        new Promise((resolve, reject) => {
          const asked = Math.max(eventQueue.elapsedMs, this.#silentUntilMs) + random.between(0.1, 2);
          lastArrivalMs = Math.max(lastArrivalMs, asked);
          eventQueue.after(lastArrivalMs - eventQueue.elapsedMs, () => {
            lastAnswerMs = Math.max(lastAnswerMs, eventQueue.elapsedMs + random.between(0.1, 2));
            const afterMs = lastAnswerMs - eventQueue.elapsedMs;
            try {
              const signature = this.#sign(validatorId, epoch, request);
              eventQueue.after(afterMs, () => resolve(signature), handle);
            } catch (error) {
              if (isAppError(error)) this.#options.onRefused(error.code);
              eventQueue.after(afterMs, () => reject(error), handle);
            }
          });
        }),
    };
  }

  /** Signs for a Byzantine member. */
  forge(validatorId: string, message: ConsensusMessage): Uint8Array {
    const identity = this.#identities.get(validatorId);
    if (identity === undefined) throw new Error(`${validatorId} has no key`);
    const bytes = signedBytes({ kind: 'consensus', message }, identity.key, validatorId);
    this.#options.onSigned(validatorId, message, bytes);
    return identity.key.sign(bytes);
  }

  #sign(validatorId: string, epoch: number, request: SignerRequest): Uint8Array {
    const identity = this.#identities.get(validatorId);
    if (identity === undefined || identity.epoch !== epoch) {
      throw new AppError('forbidden', 'SIGNER_FENCED', 'Another holder of this identity has taken over');
    }
    const bytes = signedBytes(request, identity.key, validatorId);
    if (request.kind === 'consensus') {
      identity.guard(request.message, bytes);
      this.#options.onSigned(validatorId, request.message, bytes);
    }
    return identity.key.sign(bytes);
  }
}
