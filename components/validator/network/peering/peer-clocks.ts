const maxSamples = 16;

interface Samples {
  /** Differences between a heartbeat's time and the local time on arrival, in milliseconds; the latest ones. */
  readonly leads: number[];
}

/**
 * Estimates the clock offset to other validators from their heartbeats. Network delay makes heartbeats late, so the largest
 * of a peer's recent differences is the best estimate. The median over peers makes one wrong clock harmless.
 */
export class PeerClocks {
  readonly #peers = new Map<string, Samples>();

  /** Records a heartbeat with time `atMs` that arrived at local time `nowMs`. */
  take(validatorId: string, atMs: number, nowMs: number): void {
    const samples = this.#peers.get(validatorId) ?? { leads: [] };
    this.#peers.set(validatorId, samples);
    samples.leads.push(atMs - nowMs);
    if (samples.leads.length > maxSamples) samples.leads.shift();
  }

  forget(validatorId: string): void {
    this.#peers.delete(validatorId);
  }

  /** Milliseconds by which the local clock is ahead of the peers' clocks; undefined before the first heartbeat. */
  get aheadMs(): number | undefined {
    const behind = [...this.#peers.values()].map(({ leads }) => -Math.max(...leads));
    behind.sort((a, b) => a - b);
    const middle = Math.floor(behind.length / 2);
    const [low, high] = [behind[middle - 1], behind[middle]];
    return behind.length % 2 === 0 && low !== undefined && high !== undefined ? (low + high) / 2 : high;
  }
}
