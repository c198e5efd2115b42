import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createApi } from '../harness/api.ts';
import { startSystem } from '../harness/system.ts';

/** A user id without an entry in the password database, as in containers with arbitrary user ids. */
const account = 1_234_567;

/** Whether that account can reach Node and this checkout, and the kernel allows it a user namespace. */
function isPossible(): boolean {
  if (process.getuid?.() !== 0) return false;
  const main = fileURLToPath(new URL('../../components/standalone/main.ts', import.meta.url));
  const words = [
    '--user',
    '--map-user=65534',
    process.execPath,
    '-e',
    'fs.accessSync(process.argv[1])',
    main,
  ];
  return spawnSync('unshare', words, { uid: account, gid: account }).status === 0;
}

describe.runIf(isPossible())('an account without a name', () => {
  test('runs local mode', async () => {
    const home = mkdtempSync(join(tmpdir(), 'chancery-nameless-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    chownSync(home, account, account);
    const system = await startSystem({ dataDir: join(home, 'state'), env: { HOME: home }, account });
    try {
      const health = await createApi(system.state.gatewayUrl).expect(200, 'GET', '/api/health');
      expect(health.body).toMatchObject({ status: 'healthy' });
    } finally {
      expect(await system.stop()).toMatchObject({ code: 0 });
    }
  });
});
