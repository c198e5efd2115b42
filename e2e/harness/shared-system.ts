import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type Api, createApi } from './api.ts';
import { signIn } from './journey.ts';
import { type LocalState, type LocalSystem, startSystem } from './system.ts';

/** What the journeys of one test file share: a running installation and its administrator. */
export interface Installation {
  readonly api: Api;
  readonly state: LocalState;
  /** A fresh access token of the seeded administrator. */
  token(): string;
}

/** Starts local mode before the tests of a file and stops it after them. */
export function installation(args: readonly string[] = []): Installation {
  let system: LocalSystem | undefined;
  let token = '';
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-journey-'));
  const running = (): LocalSystem => {
    if (system === undefined) {
      throw new Error('the installation runs only inside tests');
    }
    return system;
  };
  beforeAll(async () => {
    system = await startSystem({ dataDir, args });
    token = (await signIn(createApi(system.state.gatewayUrl), system.state)).access_token;
  });
  afterAll(async () => {
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return {
    get api() {
      return createApi(running().state.gatewayUrl);
    },
    get state() {
      return running().state;
    },
    token: () => token,
  };
}
