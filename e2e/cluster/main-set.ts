import { afterAll, beforeAll } from 'vitest';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { type ApiServer, openApiServer } from './kubectl.ts';
import { type RunningSet, runningSet } from './running-set.ts';

/** The set `main` of the samples in the shared installation. */
export interface MainSet {
  readonly server: ApiServer;
  readonly set: RunningSet;
}

/** Ensures a healthy set before the tests of a file, and prints a diagnosis after a failure. */
export function useMainSet(): MainSet {
  let opened: MainSet | undefined;
  const main = (): MainSet => {
    if (opened === undefined) throw new Error('the set is available in tests only');
    return opened;
  };
  beforeAll(async () => {
    await ensureInstalled();
    await ensureSamples(90);
    const server = await openApiServer();
    opened = { server, set: runningSet(server, 'main') };
    await opened.set.settled(240_000);
  }, 480_000);
  afterAll(() => opened?.server.stop());
  explainFailures(namespace);
  return {
    get server() {
      return main().server;
    },
    get set() {
      return main().set;
    },
  };
}
