import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execPath } from 'node:process';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { natsVersion } from './layers/nats.ts';
import { serverTags } from './servers.ts';

// Needs the archives of `make images`, imported on every node of the cluster.
const root = resolve(import.meta.dirname, '../..');
const images = join(root, 'dist', 'images');
const tags: Readonly<Record<string, string>> = serverTags(root);
const pods = readFileSync(join(import.meta.dirname, 'testing', 'pods.yaml'), 'utf8').replaceAll(
  /([\w-]+):TAG/g,
  (_, name: string) => `${name}:${tags[name]}`,
);
const namespace = 'images-test';

function kubectl(...words: readonly string[]): string {
  return execFileSync('kubectl', ['--namespace', namespace, ...words], { encoding: 'utf8', timeout: 90_000 });
}

function waitReady(pod: string): void {
  kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=80s');
}

/** One row of a query, over the network like other pods. */
async function ask(user: string, password: string, query: string): Promise<unknown> {
  const host = kubectl('get', 'pod', 'postgres', '--output=jsonpath={.status.podIP}');
  const client = new pg.Client({
    host,
    user,
    password,
    database: 'postgres',
    connectionTimeoutMillis: 5_000,
  });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(query)).rows[0];
  } finally {
    await client.end();
  }
}

describe('the archives', () => {
  const folder = mkdtempSync(join(tmpdir(), 'images-again-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are identical when everything except the downloads is rebuilt', () => {
    const downloads = '.cache/downloads';
    if (existsSync(join(images, downloads)))
      cpSync(join(images, downloads), join(folder, downloads), { recursive: true });
    const program = join(import.meta.dirname, 'main.ts');
    execFileSync(execPath, [program, 'gateway', `--output=${folder}`], { cwd: root, timeout: 110_000 });
    const [first, second] = [images, folder].map((place) => readFileSync(join(place, 'gateway.tar')));
    expect(second?.equals(first ?? Buffer.alloc(0))).toBe(true);
  });
});

describe('a restricted pod', () => {
  beforeAll(() => {
    execFileSync('kubectl', ['apply', '--filename=-'], { input: pods, timeout: 60_000 });
  });

  afterAll(() => {
    execFileSync('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
  });

  it('runs a component, which reports missing settings', () => {
    kubectl('wait', '--for=jsonpath={.status.phase}=Failed', 'pod/gateway', '--timeout=80s');
    const path = '{.status.containerStatuses[0].state.terminated.exitCode}';
    expect(kubectl('get', 'pod', 'gateway', `--output=jsonpath=${path}`)).toBe('78');
    expect(kubectl('logs', 'gateway')).toMatch(/^gateway: invalid configuration \(\d+\)\n {2}CHANCERY_/);
  });

  it('runs the message bus', () => {
    waitReady('nats');
    expect(kubectl('logs', 'nats')).toMatch(new RegExp(`Version: +${natsVersion.replaceAll('.', '\\.')}`));
  });

  it('runs PostgreSQL, which keeps its data in a folder with fsGroup and accepts a new password and a new role', async () => {
    waitReady('postgres');
    expect(await ask('tenant', 'pass', 'create table kept as select 7 as n; ')).toBeUndefined();
    expect(await ask('postgres', 'swordfish', 'show max_connections')).toEqual({ max_connections: '42' });
    await expect(ask('postgres', 'wrong', 'select 1')).rejects.toThrow(/password authentication failed/);
    kubectl('delete', 'pod', 'postgres', '--grace-period=30');
    kubectl('patch', 'secret', 'password', '--patch', '{"stringData":{"password":"tuna"}}');
    const role = `do $$ begin if to_regrole('wallet') is null then create role wallet login password 'more'; end if; end $$;`;
    kubectl('patch', 'configmap', 'init', '--patch', JSON.stringify({ data: { '20-more.sql': role } }));
    const again = ['apply', '--filename=-', '--selector=app=postgres'];
    execFileSync('kubectl', again, { input: pods, timeout: 60_000 });
    waitReady('postgres');
    expect(await ask('postgres', 'tuna', 'select n from tenant.kept')).toEqual({ n: 7 });
    expect(await ask('wallet', 'more', 'select 1 as n')).toEqual({ n: 1 });
    await expect(ask('postgres', 'swordfish', 'select 1')).rejects.toThrow(/password authentication failed/);
  });
});
