import { proposerOf } from '../consensus/members.ts';
import type { Register } from '../sealing/register.ts';

/** `d.hh:mm:ss` (L-76). */
export function uptimeText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const days = Math.floor(seconds / 86_400);
  return `${days}.${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** One register in the answer of `GET /api/admin/validation/status`. */
export function presentStatus(register: Register, self: string, nowMs: number) {
  const { facts, state } = register;
  const members = state.members.map((member) => member.validatorId);
  const proposes = proposerOf(members, facts.height, facts.round) === self;
  return {
    registerId: register.id,
    status: register.status,
    lastDocketNumber: facts.storedHeight - 1,
    memPoolSize: register.pool.size,
    uptime: uptimeText(nowMs - facts.startedAtMs),
    docketsBuilt: facts.docketsBuilt,
    transactionsProcessed: facts.transactionsProcessed,
    role: register.status === 'Stopped' ? 'observer' : proposes ? 'proposer' : 'voter',
    height: facts.height,
    round: facts.round,
    step: facts.step,
    validatorSetSize: members.length,
    quorum: facts.quorum,
    lastCommitAt: facts.decidedAtMs === 0 ? null : new Date(facts.decidedAtMs).toISOString(),
  };
}
