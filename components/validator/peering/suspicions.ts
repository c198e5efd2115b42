import type { Evidence, Message, Proposal } from '../consensus/messages.ts';
import { agrees, isSameValue, type Round } from '../consensus/round.ts';
import type { Register } from '../sealing/register.ts';

const mostSeen = 64;
const mostTold = 256;

/**
 * Finds out that a proposer said different things to different members: who votes for something else than this member was
 * proposed is shown the proposal that came here, and compares it with its own, also when it has decided meanwhile.
 */
export class Suspicions {
  readonly #seen = new Map<string, Map<string, Proposal>>();
  readonly #told = new Map<string, Set<string>>();

  /** A proposal that is authentic. Evidence when it contradicts one that was seen before. */
  note(registerId: string, proposal: Proposal): Evidence | undefined {
    const seen = this.#seen.get(registerId) ?? new Map<string, Proposal>();
    this.#seen.set(registerId, seen);
    const name = nameOf(proposal);
    const first = seen.get(name);
    if (first !== undefined) {
      return agrees(first, proposal) ? undefined : { kind: 'duplicate-proposal', first, second: proposal };
    }
    seen.set(name, proposal);
    const [oldest] = seen.keys();
    if (seen.size > mostSeen && oldest !== undefined) seen.delete(oldest);
    return undefined;
  }

  /** Whether a proposal contradicts what was seen, before anything of it is verified. */
  isNews(registerId: string, proposal: Proposal): boolean {
    const first = this.#seen.get(registerId)?.get(nameOf(proposal));
    return first !== undefined && !agrees(first, proposal);
  }

  /** Members that voted in the round of a message for something else than was proposed here; each is named once. */
  contradicted({ id, machine }: Register, { height, round: number }: Message): readonly string[] {
    const round = machine.rules.height === height ? machine.rounds.get(number) : undefined;
    if (round?.proposal === undefined) return [];
    const told = this.#told.get(id) ?? new Set<string>();
    const { self } = machine.rules;
    const found = [...votersForOther(round)].filter((voter) => {
      const name = `${height}/${number}/${voter}`;
      if (voter === self || told.has(name) || told.size >= mostTold) return false;
      told.add(name);
      return true;
    });
    if (found.length > 0) this.#told.set(id, told);
    return found;
  }

  /** The register goes on with another height. */
  decided(registerId: string): void {
    this.#told.delete(registerId);
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
