import { byzantineBehaviours } from './scenario.ts';

/** Everything that a complete run of the simulator must have exercised. */
export const coverageItems = [
  'partition',
  'links that lose, double and delay',
  'loss that an adversary chose',
  'member killed',
  'member lost power',
  'all members killed at once',
  'register service away',
  'signing component away',
  'signing component of the version before',
  'honest clocks that differ',
  'old volume at a member',
  'old volume at one that left',
  'one with an old volume came back',
  'old register service',
  'second start of an identity',
  'keys loaded',
  'stale snapshot of keys refused',
  'snapshot of keys of another chain refused',
  'snapshot of keys lost or malformed',
  'keys dropped while they were loaded',
  'keys dropped after their load',
  'sealed transaction submitted again late',
  'member drained',
  'drained member started again',
  'member fenced off',
  'docket decided in round 1 or later',
  'docket proposed again',
  'vote refused by the guard',
  'height signed in one request',
  'proposal signed with a vote',
  'several registers',
  'validator added',
  'validator removed',
  'validator came back',
  'Byzantine member added',
  'Byzantine member removed',
  'policy changed',
  'set changed beside Byzantine members and crashes',
  'records withheld in a partition',
  'wrong stamps beside honest skew',
  'evidence: duplicate-vote',
  'evidence: duplicate-proposal',
  ...byzantineBehaviours.map((each) => `Byzantine member ${each}` as const),
  ...[1, 2, 3, 4, 5, 7, 10, 13, 25].map((size) => `set of ${size}` as const),
] as const;
export type CoverageItem = (typeof coverageItems)[number];

/** How often each item occurred in one world. */
export type Counts = Readonly<Partial<Record<string, number>>>;

/** The coverage items that occurred in one world. */
export class Coverage {
  readonly #counts = new Map<CoverageItem, number>();

  add(item: CoverageItem): void {
    this.#counts.set(item, (this.#counts.get(item) ?? 0) + 1);
  }

  /** Records the initial set size of a register. */
  addSet(size: number): void {
    const item = coverageItems.find((each) => each === `set of ${size}`);
    if (item !== undefined) this.add(item);
  }

  has(item: CoverageItem): boolean {
    return this.#counts.has(item);
  }

  get counts(): Counts {
    return Object.fromEntries(this.#counts);
  }
}

/** The sum over many worlds. */
export class Totals {
  readonly #seeds = new Map<string, number>();
  readonly #times = new Map<string, number>();

  take(counts: Counts): void {
    for (const [item, times = 0] of Object.entries(counts)) {
      this.#seeds.set(item, (this.#seeds.get(item) ?? 0) + 1);
      this.#times.set(item, (this.#times.get(item) ?? 0) + times);
    }
  }

  /** Items that no seed covered. */
  get missing(): readonly string[] {
    return coverageItems.filter((item) => !this.#seeds.has(item));
  }

  /** One line per item: in how many seeds it occurred, and how often. */
  table(): string {
    const width = Math.max(...coverageItems.map((item) => item.length));
    const head = `${'covered'.padEnd(width)} ${'seeds'.padStart(7)} ${'times'.padStart(9)}`;
    const lines = coverageItems.map((item) => {
      const seeds = this.#seeds.get(item);
      if (seeds === undefined) return `${item.padEnd(width)}   never`;
      return `${item.padEnd(width)} ${String(seeds).padStart(7)} ${String(this.#times.get(item)).padStart(9)}`;
    });
    return [head, ...lines].join('\n');
  }
}
