import { createPublicKey, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { connectWorkload, spiffeIdOf, type Workload, type WorkloadSource } from './workload.ts';

/** A source of identities under test and its expected identity. */
export interface IdentitySource {
  /** The source that the workload connects to. */
  readonly source: WorkloadSource;
  readonly trustDomain: string;
  readonly spiffeId: string;
  /** Causes a new SVID within ten seconds; absent where that is not possible. */
  readonly rotate?: () => Promise<void>;
  stop(): Promise<void>;
}

/** Contract of every source of identities: the local issuer, SPIRE, the ServiceAccount issuer. */
export function workloadContract(name: string, start: () => Promise<IdentitySource>): void {
  describe(`workload identity: ${name}`, () => {
    const log = createLogger({ service: 'test', level: 'silent' });
    let api: IdentitySource | undefined;
    let workload: Workload | undefined;
    const started = (): { api: IdentitySource; workload: Workload } => {
      if (api === undefined || workload === undefined) throw new Error('not started');
      return { api, workload };
    };

    beforeAll(async () => {
      api = await start();
      workload = await connectWorkload({ ...api.source, log, clock: systemClock() });
    });
    afterAll(async () => {
      workload?.stop();
      await api?.stop();
    });

    it('gives the expected identity', () => {
      const { api: given, workload: mine } = started();
      expect(mine.id).toBe(given.spiffeId);
      expect(mine.trustDomain).toBe(given.trustDomain);
    });

    it('gives a leaf that fits its key, its bundle and the X.509-SVID rules', () => {
      const { workload: mine } = started();
      const { cert, key, ca, id, expiresAtMs } = mine.current();
      const leaf = new X509Certificate(cert);
      expect(spiffeIdOf(leaf)).toBe(id);
      expect(createPublicKey(key).equals(leaf.publicKey)).toBe(true);
      expect(leaf.verify(new X509Certificate(ca).publicKey)).toBe(true);
      expect(leaf.validToDate.getTime()).toBe(expiresAtMs);
      expect(leaf.validFromDate.getTime()).toBeLessThanOrEqual(Date.now());
      expect(expiresAtMs).toBeGreaterThan(Date.now());
    });

    it('gives a second client the same identity', async () => {
      const { api: given, workload: mine } = started();
      const other = await connectWorkload({ ...given.source, log, clock: systemClock() });
      expect(other.id).toBe(mine.id);
      other.stop();
    });

    it('replaces the SVID and notifies subscribers', async ({ skip }) => {
      const { api: given, workload: mine } = started();
      if (given.rotate === undefined) {
        skip();
        return;
      }
      const before = mine.current();
      let told = 0;
      const forget = mine.onRotate(() => {
        told += 1;
      });
      await given.rotate();
      await waitFor(() => told > 0);
      expect(mine.current().cert).not.toBe(before.cert);
      expect(mine.current().id).toBe(before.id);
      forget();
    });
  });
}
