import { randomUUID } from 'node:crypto';
import type { Pool } from 'undici';
import { inParallel } from '../../harness/wait.ts';
import { rawCpuSeconds } from '../contest.ts';
import { treeCpuSeconds } from '../process-cpu.ts';
import { startRawWorkflow } from '../raw/workflow/installation.ts';
import type { Role } from '../raw/workflow/site-permit.ts';
import { rawSettings, type Stage } from '../stage.ts';
import type { PermitStep, Permits } from './permits.ts';
import { type Follower, followRaw, followWallet } from './signals.ts';

/** Instances side by side. */
export const lanes = 32;
/** More than the instances side by side of any row. */
const connections = 64;

/** A program that carries out steps of site permits: the product, or the raw one. */
export interface Side {
  /** Ids of new instances, which have no step. */
  start(count: number): Promise<readonly string[]>;
  /** Takes a step; resolves once it is folded. */
  take(instanceId: string, step: PermitStep): Promise<void>;
  /** Takes the first step; resolves once the safety board has the signal that its action can be taken. */
  applyFor(instanceId: string, step: PermitStep): Promise<void>;
  /** The data that the applicant reads of an instance, oldest first. */
  disclosures(instanceId: string): Promise<readonly unknown[]>;
  cpuSeconds(): number;
  close(): Promise<void>;
}

/** A JSON request with a token; throws for any status but the expected ones. */
export async function call(
  pool: Pool,
  request: {
    readonly method: 'GET' | 'POST';
    readonly path: string;
    readonly token: string;
    readonly json?: unknown;
  },
  expected: readonly number[] = [200],
): Promise<{ readonly status: number; readonly body: ReturnType<typeof JSON.parse> }> {
  const { method, path, token, json } = request;
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const body = json === undefined ? null : JSON.stringify(json);
  const answer = await pool.request({ method, path, headers, body });
  const text = await answer.body.text();
  if (!expected.includes(answer.statusCode))
    throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  return { status: answer.statusCode, body: JSON.parse(text) };
}

/** The workflow service of the installation, at its own listener. */
export class Product implements Side {
  readonly pool: Pool;
  readonly #stage: Stage;
  readonly #permits: Permits;
  readonly #office: Follower;
  readonly #board: Follower;

  private constructor(stage: Stage, permits: Permits, followers: readonly [Follower, Follower]) {
    this.#stage = stage;
    this.#permits = permits;
    [this.#office, this.#board] = followers;
    this.pool = stage.pool(stage.addressOf('blueprint', 'HTTPS'), connections);
  }

  /** The planning office and the safety board follow their wallets at the hub. */
  static async open(stage: Stage, permits: Permits): Promise<Product> {
    const origin = stage.addressOf('blueprint', 'HTTPS');
    const follow = (role: Role): Promise<Follower> => {
      const { token, wallet } = permits.parties[role];
      return followWallet(origin, stage.svid, { token, wallet: wallet.walletAddress });
    };
    return new Product(stage, permits, [await follow('planning-office'), await follow('safety-board')]);
  }

  start(count: number): Promise<readonly string[]> {
    const { registerId, blueprintId, parties } = this.#permits;
    const { token } = parties.applicant;
    const json = { blueprintId, registerId };
    const request = { method: 'POST', path: '/api/instances/', token, json } as const;
    return inParallel(Array.from({ length: count }), lanes, async () => {
      const { body } = await call(this.pool, request, [201]);
      return body.instanceId;
    });
  }

  async take(instanceId: string, step: PermitStep): Promise<void> {
    const isFolded = await this.submit(instanceId, step);
    if (!isFolded) await this.folded(instanceId, step);
  }

  /** Submits a step; resolves to whether it is folded already, as it is on a register of development. */
  async submit(instanceId: string, { role, actionId, payload, isRejection }: PermitStep): Promise<boolean> {
    const { registerId, blueprintId, parties } = this.#permits;
    const { token, wallet } = parties[role];
    const senderWallet = wallet.walletAddress;
    const path = `/api/instances/${instanceId}/actions/${actionId}`;
    if (isRejection === true) {
      const json = { ...payload, senderWallet };
      await call(this.pool, { method: 'POST', path: `${path}/reject`, token, json }, [200, 202]);
      return false;
    }
    const json = { blueprintId, senderWallet, registerAddress: registerId, payloadData: payload };
    const request = { method: 'POST', path: `${path}/execute`, token, json } as const;
    const { status, body } = await call(this.pool, request, [200, 202]);
    return status === 200 && body.pending === undefined;
  }

  /** Resolves when the planning office has the signal that a step is folded. */
  folded(instanceId: string, { actionId, isRejection }: PermitStep): Promise<void> {
    const name = isRejection === true ? 'ActionRejected' : 'ActionConfirmed';
    return this.#office.heard(`${name} ${instanceId} ${actionId}`);
  }

  async applyFor(instanceId: string, step: PermitStep): Promise<void> {
    await Promise.all([this.submit(instanceId, step), this.#board.heard(`ActionAvailable ${instanceId} 1`)]);
  }

  async disclosures(instanceId: string, role: Role = 'applicant'): Promise<readonly unknown[]> {
    const { token } = this.#permits.parties[role];
    const path = `/api/workflows/${instanceId}/disclosures`;
    return (await call(this.pool, { method: 'GET', path, token })).body.disclosures;
  }

  cpuSeconds(): number {
    return treeCpuSeconds(this.#stage.launcherPid);
  }

  async close(): Promise<void> {
    this.#office.close();
    this.#board.close();
    await this.pool.close();
  }
}

/** The raw programs. @param name of their schemas in the database */
export async function openRaw(
  stage: Stage,
  { name, isEncrypted }: { readonly name: string; readonly isEncrypted: boolean },
): Promise<Side> {
  const raw = await startRawWorkflow(rawSettings(stage, name, 1), isEncrypted);
  const pool = stage.pool(raw.url, connections);
  const board = await followRaw(`${raw.url}/safety-board`, stage.svid);
  const take: Side['take'] = async (instanceId, { role, ...step }) => {
    const json = { ...step, instanceId };
    await call(pool, { method: 'POST', path: '/actions', token: raw.tokens[role], json });
  };
  return {
    start: async (count) => {
      const json = Array.from({ length: count }, () => randomUUID());
      await call(pool, { method: 'POST', path: '/instances', token: raw.tokens.applicant, json });
      return json;
    },
    take,
    applyFor: async (instanceId, step) => {
      await Promise.all([take(instanceId, step), board.heard(`${instanceId} 1`)]);
    },
    disclosures: async (instanceId) => {
      const path = `/disclosures/${instanceId}`;
      return (await call(pool, { method: 'GET', path, token: raw.tokens.applicant })).body;
    },
    cpuSeconds: () => rawCpuSeconds(stage, raw),
    close: async () => {
      board.close();
      await pool.close();
      await raw.stop();
    },
  };
}
