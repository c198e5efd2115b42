import { utf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { failure } from '../../errors.ts';
import type { Origin } from '../../intake/admission/admission.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import type { SubscriptionCheck } from '../../intake/admission/subscriptions.ts';
import { parseSubmission } from '../../intake/verification/submission.ts';
import type { SubmissionClient } from './clients.ts';

interface ForwardOptions {
  readonly validatorId: string;
  readonly clock: Clock;
  readonly subscriptions: Pick<SubscriptionCheck, 'assertSubscribed'>;
  readonly peerClients: SubmissionClient;
  /** Validator set of a register as the register service stores it; undefined for an unknown register. */
  findMembers(registerId: string): Promise<readonly string[] | undefined>;
}

/**
 * Forwards a submission that this validator cannot accept to a member of its register. Resolves with the member's answer,
 * or undefined when no other member may accept it; the original refusal then applies.
 * Throws the AppError of the origin for the register, forbidden SUBSCRIPTION_REQUIRED, unavailable VALIDATOR_UNAVAILABLE
 * when no member can be reached.
 */
export type Forward = (text: string, origin: Origin, refusal: unknown) => Promise<Answer | undefined>;

/** Refusals for which another member may accept the submission: this validator is no member, or accepts nothing now. */
const forwardableCodes: readonly string[] = [
  'REGISTER_NOT_FOUND',
  'REGISTER_NOT_READY',
  'SEALING_STOPPED',
  'VALIDATOR_PAUSED',
  'VALIDATOR_DRAINING',
];
const cacheTtlMs = 1_000;
const maxCachedRegisters = 10_000;

interface CachedMembers {
  readonly untilMs: number;
  readonly members: Promise<readonly string[] | undefined>;
}

/**
 * Any validator accepts a submission for any register and forwards it once. A forwarded submission is not forwarded again,
 * so it takes two hops at most. The register service itself sends genesis to each member.
 */
export function createForward(options: ForwardOptions): Forward {
  const cached = new Map<string, CachedMembers>();
  /** The member that answered last, by register; the next submission tries it first. */
  const preferred = new Map<string, string>();

  function membersOf(registerId: string): Promise<readonly string[] | undefined> {
    const nowMs = options.clock.nowMs();
    const found = cached.get(registerId);
    if (found !== undefined && found.untilMs > nowMs) return found.members;
    if (cached.size >= maxCachedRegisters) cached.clear();
    const members = options.findMembers(registerId);
    cached.set(registerId, { untilMs: nowMs + cacheTtlMs, members });
    members.catch(() => cached.delete(registerId));
    return members;
  }

  function inOrder(registerId: string, members: readonly string[]): readonly string[] {
    const first = preferred.get(registerId);
    const others = members.filter((id) => id !== options.validatorId && id !== first);
    return first !== undefined && members.includes(first) ? [first, ...others] : others;
  }

  function remember(registerId: string, member: string): void {
    if (preferred.size >= maxCachedRegisters) preferred.clear();
    preferred.set(registerId, member);
  }

  /** Undefined when the member cannot be reached. */
  async function askMember(member: string, submission: Uint8Array): Promise<Answer | undefined> {
    try {
      return await options.peerClients.submit(member, submission);
    } catch (error) {
      if (!isAppError(error)) throw error;
      return undefined;
    }
  }

  async function ask(
    registerId: string,
    members: readonly string[],
    submission: Uint8Array,
  ): Promise<Answer | undefined> {
    let busy: Answer | undefined;
    for (const member of inOrder(registerId, members)) {
      const answer = await askMember(member, submission);
      if (answer !== undefined && answer.status !== 503) {
        remember(registerId, member);
        return answer;
      }
      busy ??= answer;
    }
    return busy;
  }

  return async (text, origin, refusal) => {
    if (origin.isForwarded || !isAppError(refusal) || !forwardableCodes.includes(refusal.code))
      return undefined;
    const { registerId, type } = parseSubmission(text).envelope;
    // a validator that refuses submissions has not checked the register yet
    origin.assertRegister?.(registerId);
    if (type === 'Genesis') return undefined;
    const members = await membersOf(registerId);
    if (members === undefined || !members.some((id) => id !== options.validatorId)) return undefined;
    if (origin.person !== undefined)
      await options.subscriptions.assertSubscribed(origin.person.organizationId, registerId);
    const answer = await ask(registerId, members, utf8(text));
    if (answer !== undefined || refusal.kind === 'unavailable') return answer;
    throw failure('VALIDATOR_UNAVAILABLE', { retryAfterSeconds: 1 });
  };
}
