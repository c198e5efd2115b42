import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, type GatewayAccess, namespace, openGateway } from './installed.ts';
import { run } from './kubectl.ts';

const root = join(fileURLToPath(import.meta.url), '../../..');

/**
 * The journeys of local mode that need only a gateway and its administrator. The others stop processes, use sockets of
 * local mode, or send requests that a proxy does not pass on. The first one expects a person without wallets.
 */
const journeys = [
  'wallet-claim',
  'ledger',
  'identity',
  'governance',
  'governance-outside',
  'policy',
  'organization-wallet',
];

/** A test that needs the Workload API of another process. */
const localOnly = 'a SPIFFE certificate mints its own token and no other';

let door: GatewayAccess;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples();
  door = await openGateway();
}, 360_000);

explainFailures(namespace);

test.each(journeys)(
  'the journey %s runs unchanged against the cluster, through the Ingress with TLS',
  async (name) => {
    const file = `e2e/local/${name}.e2e.test.ts`;
    const args = ['run', '--project', 'e2e', '--root', root, '-t', `^(?!.*${localOnly}).*$`, file];
    const env = {
      CHANCERY_TEST_STATE: door.stateFile,
      NODE_EXTRA_CA_CERTS: door.caFile,
      // the counters of the journey are checked here
      CHANCERY_TEST_REPORTS: undefined,
    };
    const { code, out, err } = await run(join(root, 'node_modules/.bin/vitest'), args, {
      timeoutMs: 180_000,
      env,
    });
    expect(code, `${out}\n${err}`).toBe(0);
  },
  200_000,
);
