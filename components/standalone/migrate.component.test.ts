import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { testDatabase } from '#kit/testing/database.ts';

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function migrate(component: string, url: string): Promise<Ended> {
  const main = fileURLToPath(new URL(`../${component}/main.ts`, import.meta.url));
  // Other settings of a deployment are present and must not be read.
  const env = { DATABASE_URL: url, CHANCERY_TENANT_GRPC: 'no address', CHANCERY_KEK_FILE: '/nowhere' };
  const known = component === 'wallet' ? env : { DATABASE_URL: url, CHANCERY_INSTALLATION: 'Not a name' };
  const child = spawn(process.execPath, [main, 'migrate'], { env: known, stdio: ['ignore', 'pipe', 'pipe'] });
  const texts: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => texts.push(String(data)));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output: texts.join('') })));
}

describe('a process with the argument migrate', () => {
  it.each(['tenant', 'wallet', 'register', 'blueprint', 'credential'])(
    '%s brings its schema up to date and exits',
    { timeout: 60_000 },
    async (component) => {
      const url = await testDatabase(`migrate_${component}`);
      const { code, output } = await migrate(component, url);
      expect([code, output]).toEqual([0, expect.stringContaining('migrated')]);
      const client = new Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query(`SELECT name FROM ${component}.migrations ORDER BY name`);
      await client.end();
      expect(output.match(/"\d{4}-[a-z-]+"/g)).toEqual(rows.map((row) => `"${row.name}"`));
      expect(rows.length).toBeGreaterThan(1);
    },
  );
});
