import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memberDid } from '#core/ledger/did.ts';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence, fetchIndexedIds, replayRules } from '../harness/evidence.ts';
import {
  createRegister,
  createWallet,
  signIn,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const rounds = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 100 : 3;

/** Sends transactions until the system dies; records which were accepted and which were seen confirmed. */
class Load {
  readonly accepted = new Set<string>();
  readonly confirmed = new Set<string>();
  #stopped = false;

  get isStopped(): boolean {
    return this.#stopped;
  }

  stop(): void {
    this.#stopped = true;
  }

  async run(api: Api, token: string, registerId: string): Promise<void> {
    const key = createOutsideKey();
    for (let n = 0; !this.#stopped; n++) {
      const json = signSubmission(key, { registerId, payload: { n, at: Date.now() } });
      try {
        const answer = await api.send('POST', '/api/v1/transactions/validate', { token, json });
        if (answer.status === 200) {
          this.accepted.add(json.TransactionId);
          const path = `/api/registers/${registerId}/transactions/${json.TransactionId}`;
          const seen = await api.send('GET', path, { token });
          if (seen.status === 200 && (seen.body as { status: string }).status === 'confirmed') {
            this.confirmed.add(json.TransactionId);
          }
        }
      } catch {
        // The connection broke because the system was killed: without an answer there is no promise.
        return;
      }
    }
  }
}

/** The version of the policy that the interface returns. */
async function policyVersion(api: Api, token: string, registerId: string): Promise<number> {
  const { body } = await api.expect(200, 'GET', `/api/registers/${registerId}/policy`, { token });
  return z.object({ policy: z.object({ version: z.number() }) }).parse(body).policy.version;
}

/** Changes the policy until the system dies; returns the highest version that was seen in force. */
async function govern(
  load: Load,
  api: Api,
  token: string,
  register: { id: string; owner: Wallet },
): Promise<number> {
  const updatedBy = memberDid(register.owner.walletAddress);
  let seen = 0;
  while (!load.isStopped) {
    try {
      seen = Math.max(seen, await policyVersion(api, token, register.id));
      const json = { policy: { governance: { proposalTtlDays: 1 + (seen % 90) } }, updatedBy };
      await api.send('POST', `/api/registers/${register.id}/policy/update`, { token, json });
    } catch {
      // Killed: the last request may be sealed or not.
      break;
    }
  }
  return seen;
}

describe('crash', () => {
  let dataDir = '';
  beforeAll(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-crash-'));
  });
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  test(`${rounds} kills at random points under load lose nothing that was acknowledged`, async () => {
    let system: LocalSystem = await startSystem({ dataDir });
    let api = createApi(system.state.gatewayUrl);
    let token = (await signIn(api, system.state)).access_token;
    const owner = await createWallet(api, token, 'ED25519');
    const registerId = await createRegister(api, token, 'Crash register', owner);
    await waitOnline(api, token, registerId);
    const accepted = new Set<string>();
    const confirmed = new Set<string>();
    let version = 0;
    for (let round = 0; round < rounds; round++) {
      const load = new Load();
      const workers = [1, 2, 3, 4].map(() => load.run(api, token, registerId));
      const governed = govern(load, api, token, { id: registerId, owner });
      await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 1_000));
      await system.kill();
      load.stop();
      await Promise.all(workers);
      version = Math.max(version, await governed);
      for (const txId of load.accepted) accepted.add(txId);
      for (const txId of load.confirmed) confirmed.add(txId);
      system = await startSystem({ dataDir });
      api = createApi(system.state.gatewayUrl);
      token = (await signIn(api, system.state)).access_token;
      expect(await policyVersion(api, token, registerId)).toBeGreaterThanOrEqual(version);
    }
    try {
      expect(version).toBeGreaterThan(1);
      expect(accepted.size).toBeGreaterThan(rounds);
      for (const txId of accepted) {
        await waitConfirmed(api, token, registerId, txId);
      }
      const evidence = await collectEvidence(api, token, registerId);
      checkEvidence(evidence);
      expect(replayRules(evidence).policy.version).toBeGreaterThanOrEqual(version);
      const sealed = evidence.dockets.flatMap((docket) => docket.transactionIds);
      expect(new Set(sealed).size).toBe(sealed.length);
      expect([...confirmed].filter((txId) => !sealed.includes(txId))).toEqual([]);
      expect((await fetchIndexedIds(api, token, registerId)).toSorted()).toEqual(sealed.toSorted());
    } finally {
      await system.stop();
    }
  }, 3_600_000);
});
