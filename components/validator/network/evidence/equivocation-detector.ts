import type { Evidence, Message, Proposal } from '../../chain/consensus/messages.ts';
import { agrees, isSameValue, type Round } from '../../chain/consensus/round.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';

const maxSeen = 64;
const maxNotified = 256;

/**
 * Detects a proposer that sent different proposals to different members. A member that votes for another value is sent the
 * proposal received here and compares it with its own, even after it has decided.
 */
export class EquivocationDetector {
  readonly #recorded = new Map<string, Map<string, Proposal>>();
  readonly #notified = new Map<string, Set<string>>();

  /** Records an authentic proposal. Returns evidence when it contradicts an earlier one. */
  record(registerId: string, proposal: Proposal): Evidence | undefined {
    const recorded = this.#recorded.get(registerId) ?? new Map<string, Proposal>();
    this.#recorded.set(registerId, recorded);
    const name = nameOf(proposal);
    const first = recorded.get(name);
    if (first !== undefined) {
      return agrees(first, proposal) ? undefined : { kind: 'duplicate-proposal', first, second: proposal };
    }
    recorded.set(name, proposal);
    const [oldest] = recorded.keys();
    if (recorded.size > maxSeen && oldest !== undefined) recorded.delete(oldest);
    return undefined;
  }

  /** Whether a proposal, not yet verified, contradicts a recorded one. */
  isContradiction(registerId: string, proposal: Proposal): boolean {
    const first = this.#recorded.get(registerId)?.get(nameOf(proposal));
    return first !== undefined && !agrees(first, proposal);
  }

  /** Members that voted in the message's round for a value other than the local proposal; each is returned once. */
  findContradicting({ id, machine }: RegisterChain, { height, round: number }: Message): readonly string[] {
    const round = machine.rules.height === height ? machine.rounds.get(number) : undefined;
    if (round?.proposal === undefined) return [];
    const notified = this.#notified.get(id) ?? new Set<string>();
    const { self } = machine.rules;
    const found = [...votersForOther(round)].filter((voter) => {
      const name = `${height}/${number}/${voter}`;
      if (voter === self || notified.has(name) || notified.size >= maxNotified) return false;
      notified.add(name);
      return true;
    });
    if (found.length > 0) this.#notified.set(id, notified);
    return found;
  }

  /** The register has moved to another height. */
  decided(registerId: string): void {
    this.#notified.delete(registerId);
  }
}

function votersForOther({ proposal, prevotes, precommits }: Round): Set<string> {
  const voters = new Set<string>();
  for (const vote of [...prevotes.values(), ...precommits.values()]) {
    if (vote.value !== undefined && !isSameValue(vote.value, proposal?.value)) voters.add(vote.validatorId);
  }
  return voters;
}

function nameOf({ height, round, validatorId }: Proposal): string {
  return `${height}/${round}/${validatorId}`;
}
