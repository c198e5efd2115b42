import { AppError, isAppError } from '#core/errors/errors.ts';
import { type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import type { Random } from '#kit/testing/random.ts';
import type { BatchSignatures, Signer, SignerBatch, SignerRequest } from '../../chain/sealing/ports.ts';
import {
  batchSignatures,
  createGuard,
  type Guard,
  type GuardedMessage,
  signedBytes,
} from '../fake-signer.ts';
import type { TestKey } from '../keys.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

export interface SigningOptions {
  readonly eventQueue: EventQueue;
  readonly random: Random;
  /** A component that signs any request. */
  readonly unguarded?: boolean;
  /** A component that repeats the positions of a batch without a comparison of the bytes. */
  readonly confused?: boolean;
  /** A batch is to be signed. */
  onBatch(batch: SignerBatch): void;
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
  /** Replicas of a version that signs no batches answer, as during a rolling upgrade. */
  isEarlier = false;
  /** Until then no request is answered. */
  #silentUntilMs = 0;

  constructor(options: SigningOptions) {
    this.#options = options;
  }

  add(validatorId: string, key: TestKey, isGuarded: boolean): void {
    const isLoose = !isGuarded || this.#options.unguarded === true;
    const guard = isLoose ? () => {} : createGuard({ comparesBytes: this.#options.confused !== true });
    this.#identities.set(validatorId, { key, guard, epoch: 0 });
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
    const request = <T>(answer: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const asked = Math.max(eventQueue.elapsedMs, this.#silentUntilMs) + random.between(0.1, 2);
        lastArrivalMs = Math.max(lastArrivalMs, asked);
        eventQueue.after(lastArrivalMs - eventQueue.elapsedMs, () => {
          lastAnswerMs = Math.max(lastAnswerMs, eventQueue.elapsedMs + random.between(0.1, 2));
          const afterMs = lastAnswerMs - eventQueue.elapsedMs;
          try {
            const answered = answer();
            eventQueue.after(afterMs, () => resolve(answered), handle);
          } catch (error) {
            if (isAppError(error)) this.#options.onRefused(error.code);
            eventQueue.after(afterMs, () => reject(error), handle);
          }
        });
      });
    return {
      key: { publicKey: key.publicKey, walletAddress: key.address },
      signsBatches: !this.isEarlier,
      sign: (asked) => request(() => this.#sign(validatorId, epoch, asked)),
      signBatch: (batch) => request(() => this.#signBatch(validatorId, epoch, batch)),
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
    const identity = this.#held(validatorId, epoch);
    const bytes = signedBytes(request, identity.key, validatorId);
    if (request.kind === 'consensus')
      this.#guard(validatorId, identity, [{ message: request.message, bytes }]);
    return identity.key.sign(bytes);
  }

  #signBatch(validatorId: string, epoch: number, batch: SignerBatch): BatchSignatures {
    const identity = this.#held(validatorId, epoch);
    if (this.isEarlier) throw new AppError('invalid', 'INVALID_REQUEST', 'The message has no known type');
    this.#options.onBatch(batch);
    this.#guard(
      validatorId,
      identity,
      batch.messages.map((message) => ({ message, bytes: signBytes(message) })),
    );
    return batchSignatures(batch, identity.key, validatorId);
  }

  #held(validatorId: string, epoch: number): Identity {
    const identity = this.#identities.get(validatorId);
    if (identity === undefined || identity.epoch !== epoch) {
      throw new AppError('forbidden', 'SIGNER_FENCED', 'Another holder of this identity has taken over');
    }
    return identity;
  }

  #guard(validatorId: string, identity: Identity, messages: readonly GuardedMessage[]): void {
    identity.guard(messages);
    for (const { message, bytes } of messages) this.#options.onSigned(validatorId, message, bytes);
  }
}
