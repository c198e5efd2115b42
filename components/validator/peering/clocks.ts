const kept = 16;

interface Samples {
  /** Milliseconds by which a heartbeat's time was ahead of ours when it came, the latest ones. */
  readonly leads: number[];
}

/**
 * How the clocks of other validators stand to ours, from the times in their heartbeats. A heartbeat comes late by its way,
 * so the largest of the latest leads is nearest to the truth; of several validators the median counts, so that one with a
 * wrong clock does not accuse the others.
 */
export class PeerClocks {
  readonly #peers = new Map<string, Samples>();

  /** A heartbeat that says `atMs` has come at `nowMs` of ours. */
  take(validatorId: string, atMs: number, nowMs: number): void {
    const samples = this.#peers.get(validatorId) ?? { leads: [] };
    this.#peers.set(validatorId, samples);
    samples.leads.push(atMs - nowMs);
    if (samples.leads.length > kept) samples.leads.shift();
  }

  forget(validatorId: string): void {
    this.#peers.delete(validatorId);
  }

  /** Milliseconds by which ours is ahead of the others'; undefined while nobody was heard. */
  get aheadMs(): number | undefined {
    const behind = [...this.#peers.values()].map(({ leads }) => -Math.max(...leads));
    behind.sort((a, b) => a - b);
    const middle = Math.floor(behind.length / 2);
    const [low, high] = [behind[middle - 1], behind[middle]];
    return behind.length % 2 === 0 && low !== undefined && high !== undefined ? (low + high) / 2 : high;
  }
}
