import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApi } from '../harness/api.ts';
import { createRegister, createWallet, signIn, waitOnline } from '../harness/journey.ts';
import { startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';

describe('local mode', () => {
  let dataDir = '';
  beforeAll(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-local-'));
  });
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  test('starts on an empty directory, prints its addresses for programs and people, stops within five seconds', async () => {
    const system = await startSystem({ dataDir });
    expect(statSync(join(dataDir, 'local.json')).mode & 0o777).toBe(0o600);
    expect(statSync(system.state.adminPasswordFile).mode & 0o777).toBe(0o600);
    const health = await createApi(system.state.gatewayUrl).expect(200, 'GET', '/api/health');
    expect(health.body).toMatchObject({ status: 'healthy' });
    const screen = system.output();
    for (const text of [
      system.state.gatewayUrl,
      '/docs',
      system.state.adminEmail,
      system.state.adminPasswordFile,
    ]) {
      expect(screen).toContain(text);
    }
    const { code, tookMs } = await system.stop();
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(5_000);
    const lines = readFileSync(join(dataDir, 'logs', 'chancery.log'), 'utf8')
      .trim()
      .split('\n');
    const services = new Set(lines.map((line) => JSON.parse(line).service));
    expect([...services]).toEqual(expect.arrayContaining(['tenant', 'validator-0', 'gateway']));
    expect(lines.filter((line) => line.split('"service":').length !== 2)).toEqual([]);
  });

  test('a second start continues from the same state', async () => {
    const first = await startSystem({ dataDir });
    const api = createApi(first.state.gatewayUrl);
    const { access_token: token } = await signIn(api, first.state);
    const wallet = await createWallet(api, token, 'ED25519');
    await first.stop();
    const second = await startSystem({ dataDir });
    try {
      const again = createApi(second.state.gatewayUrl);
      const tokens = await signIn(again, second.state);
      const found = await again.expect(200, 'GET', `/api/wallets/${wallet.id}`, {
        token: tokens.access_token,
      });
      expect(found.body).toMatchObject({ walletAddress: wallet.walletAddress });
    } finally {
      await second.stop();
    }
  });

  test('a second start on a directory in use is refused with one clear line', async () => {
    const system = await startSystem({ dataDir });
    try {
      await expect(startSystem({ dataDir: `${dataDir}/.` })).rejects.toThrow(
        /is in use by a running Chancery/,
      );
      await createApi(system.state.gatewayUrl).expect(200, 'GET', '/api/health');
    } finally {
      await system.stop();
    }
  });

  test('four validators in one process seal together and stop within five seconds', async () => {
    const four = join(dataDir, 'four');
    const system = await startSystem({ dataDir: four, args: ['--validators', '4'] });
    const api = createApi(system.state.gatewayUrl);
    const { access_token: token } = await signIn(api, system.state);
    const owner = await createWallet(api, token, 'ED25519');
    const registerId = await createRegister(api, token, 'Four in one', owner);
    await waitOnline(api, token, registerId);
    const status = await setStatus(api, token, registerId);
    expect(status).toMatchObject({ status: 'Running', quorum: 3, operational: 4 });
    expect(system.output()).toContain('4; sealing continues without 1 of them');
    const { code, tookMs } = await system.stop();
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(5_000);
    await expect(startSystem({ dataDir: four, args: ['--validators', '1'] })).rejects.toThrow(
      /^local mode did not become ready:\nchancery: .*four has 4 validators since its first start; [^\n]*$/,
    );
  });

  test('a restart of a validator is refused when nothing runs', async () => {
    await expect(startSystem({ dataDir, args: ['--again', 'validator-0'] })).rejects.toThrow(
      /chancery: no Chancery runs on /,
    );
  });

  test('an unknown option is refused with an explanation', async () => {
    await expect(startSystem({ dataDir, args: ['--nonsense'] })).rejects.toThrow(
      /npm start -- \[--data DIR\]/,
    );
  });
});
