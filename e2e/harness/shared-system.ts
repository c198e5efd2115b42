import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type Api, createApi } from './api.ts';
import { signIn } from './journey.ts';
import { type LocalState, type LocalSystem, readState, startSystem } from './system.ts';

/** The installation that the journeys of one test file share, and its administrator. */
export interface Installation {
  readonly api: Api;
  readonly state: LocalState;
  /** A fresh access token of the seeded administrator. */
  token(): string;
}

/**
 * Starts local mode before the tests of a file and stops it after them. When CHANCERY_TEST_STATE names a file in the
 * form of `local.json` that describes a running installation, that one is used, whatever `args` are.
 */
export function installation(args: readonly string[] = []): Installation {
  const given = process.env['CHANCERY_TEST_STATE'];
  let state: LocalState | undefined;
  let system: LocalSystem | undefined;
  let token = '';
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-journey-'));
  const running = (): LocalState => {
    if (state === undefined) {
      throw new Error('the installation runs only inside tests');
    }
    return state;
  };
  beforeAll(async () => {
    if (given === undefined) system = await startSystem({ dataDir, args });
    state = given === undefined ? system?.state : readState(given);
    token = (await signIn(createApi(running().gatewayUrl), running())).access_token;
  });
  afterAll(async () => {
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return {
    get api() {
      return createApi(running().gatewayUrl);
    },
    get state() {
      return running();
    },
    token: () => token,
  };
}
