import { encodeBase64 } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import { buildSuspension, suspensionTransaction } from '#core/ledger/governance/suspension.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import { nextTimestamp } from '../../chain/building/docket.ts';
import { contextOf } from '../../chain/building/overlay.ts';
import type { Signer } from '../../chain/sealing/ports.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { signerFor } from '../../chain/sealing/signer-key.ts';
import { isMember } from '../../chain/state/state.ts';
import type { Admission } from '../../intake/admission/admission.ts';
import type { ProvenEvidence } from '../evidence/evidence.ts';
import {
  convictedValidators,
  type DoubleSign,
  findSuspensionEvidence,
  isSuspensionProposal,
  proposalDelayMs,
  submissionText,
} from './suspension-evidence.ts';

interface SuspensionProposerOptions {
  readonly self: string;
  readonly signer: Signer;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  readonly log: Logger;
  find(registerId: string): RegisterChain | undefined;
  evidence(registerId: string): readonly ProvenEvidence[];
  submit(text: string): ReturnType<Admission['submit']>;
  /** This validator has submitted a suspension proposal. */
  opened(): void;
}

const retryMs = { first: 5_000, last: 300_000 } as const;

/**
 * Proposes to a register's roster to suspend a validator that signed conflicting messages. All members hold the evidence, so
 * they take turns, and the register's rules admit one proposal. The roster decides on it.
 */
export class SuspensionProposer {
  readonly #options: SuspensionProposerOptions;
  readonly #delays = new Map<string, number>();

  constructor(options: SuspensionProposerOptions) {
    this.#options = options;
  }

  /** Called when evidence of a register exists or the register has advanced. */
  consider(registerId: string): void {
    const { find, evidence, self, scheduler } = this.#options;
    const register = find(registerId);
    if (register === undefined) return;
    const known = evidence(registerId);
    const accused = convictedValidators(known);
    const members = register.state.members.map(({ validatorId }) => validatorId);
    for (const validatorId of accused) {
      const name = timerKey(registerId, validatorId);
      if (this.#findEvidence(register, validatorId) === undefined) {
        scheduler.clear(name);
        this.#delays.delete(name);
      } else if (!this.#delays.has(name)) {
        const { height } = register.state;
        this.#schedule(registerId, validatorId, proposalDelayMs(members, { self, accused, height }));
      }
    }
  }

  #findEvidence(register: RegisterChain, validatorId: string): DoubleSign | undefined {
    const { self, evidence } = this.#options;
    const isFit = register.isOpen && isMember(register, self) && validatorId !== self;
    return isFit ? findSuspensionEvidence(register.state, validatorId, evidence(register.id)) : undefined;
  }

  #schedule(registerId: string, validatorId: string, afterMs: number): void {
    const name = timerKey(registerId, validatorId);
    const delayMs = Math.min((this.#delays.get(name) ?? retryMs.first / 2) * 2, retryMs.last);
    this.#delays.set(name, delayMs);
    const act = () => void this.#propose(registerId, validatorId);
    this.#options.scheduler.set(name, afterMs, act);
  }

  async #propose(registerId: string, validatorId: string): Promise<void> {
    const { find, log, opened } = this.#options;
    const register = find(registerId);
    const evidence = register && this.#findEvidence(register, validatorId);
    const name = timerKey(registerId, validatorId);
    if (register === undefined || evidence === undefined) {
      this.#delays.delete(name);
      return;
    }
    // Scheduled before any await; once the proposal is open, the next call of `consider` cancels it.
    this.#schedule(registerId, validatorId, this.#delays.get(name) ?? retryMs.first);
    if (isProposalPending(register, validatorId)) return;
    try {
      const { added, transactionId } = await this.#submitProposal(register, validatorId, evidence);
      if (added) opened();
      log.warn(
        { registerId, validatorId, txId: transactionId },
        'proposed to suspend a validator that signed conflicting messages',
      );
    } catch (error) {
      const code = isAppError(error) ? error.code : 'INTERNAL_ERROR';
      log.warn(
        { registerId, validatorId, code, err: error },
        'the proposal to suspend a validator was refused; it is repeated',
      );
    }
  }

  async #submitProposal(register: RegisterChain, validatorId: string, evidence: DoubleSign) {
    const { self, clock, submit } = this.#options;
    const { state } = register;
    const signer = signerFor(state.members, self, this.#options.signer);
    const { publicKey, walletAddress: proposerAddress } = signer.key;
    const context = contextOf(state, nextTimestamp(state, clock.nowMicros()));
    const payload = buildSuspension(state.ledger, { validatorId, evidence, proposerAddress }, context);
    const proposal = suspensionTransaction(register.id, payload, publicKey);
    const signature = await signer.sign({
      kind: 'suspension',
      registerId: register.id,
      payload: utf8(proposal.payloadText),
    });
    return submit(submissionText(proposal, publicKey, encodeBase64(signature)));
  }
}

function timerKey(registerId: string, validatorId: string): string {
  return `suspension/${registerId}/${validatorId}`;
}

function isProposalPending(register: RegisterChain, validatorId: string): boolean {
  for (const transaction of register.pool.waiting()) {
    // Control transactions come first.
    if (transaction.lane !== 'control') return false;
    if (isSuspensionProposal(transaction, validatorId)) return true;
  }
  return false;
}
