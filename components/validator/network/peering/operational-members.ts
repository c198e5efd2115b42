import type { Clock } from '#kit/clock/clock.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Head } from '../transport/transport.ts';
import type { Presence } from './presence.ts';

/** A member of a register as this validator sees it. */
export interface OperationalMember {
  readonly validatorId: string;
  /** 0 for never; the current time for this validator itself. */
  readonly heardAtMs: number;
  /** Heard within the policy's operationalTtlSeconds. */
  readonly isOperational: boolean;
  readonly version: string;
  readonly height: number;
  readonly round: number;
}

/** The chain head of a register at this validator. */
export function headOf({ id: registerId, state, machine }: RegisterChain): Head {
  const { height, headHash } = state;
  return { registerId, height, round: machine.round, headHash };
}

interface OperationalMembersOptions {
  readonly self: string;
  readonly version: string;
  readonly clock: Clock;
  readonly presence: Pick<Presence, 'contact'>;
}

/** The members of a register, by validator id, and when each was last heard. */
export function operationalMembers(
  { self, version, clock, presence }: OperationalMembersOptions,
  register: RegisterChain,
): readonly OperationalMember[] {
  const nowMs = clock.nowMs();
  const ttlMs = register.state.policy.validators.operationalTtlSeconds * 1_000;
  return register.state.members.map(({ validatorId }) => {
    const isSelf = validatorId === self;
    const seen = presence.contact(validatorId);
    const head = isSelf ? headOf(register) : seen.head(register.id);
    const heardAtMs = isSelf ? nowMs : seen.heardAtMs;
    return {
      validatorId,
      heardAtMs,
      isOperational: heardAtMs > 0 && nowMs - heardAtMs <= ttlMs,
      version: isSelf ? version : seen.version,
      height: head?.height ?? 0,
      round: head?.round ?? 0,
    };
  });
}
