import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createLogger } from '#kit/log/log.ts';
import { startPostgres } from '../../standalone/postgres/embedded.ts';

/**
 * Starts one PostgreSQL for the whole test run, without fsync, in a temporary directory, and provides its address as
 * `postgresUrl`. Returns the function that stops it.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'chy-test-'));
  const socketDir = join(directory, 's');
  await mkdir(socketDir, { mode: 0o700 });
  const log = createLogger({ service: 'test', level: 'warn' });
  const postgres = await startPostgres({ dataDir: join(directory, 'data'), socketDir, fsync: false, log });
  project.provide('postgresUrl', postgres.url('postgres'));
  return async () => {
    await postgres.stop();
    await rm(directory, { recursive: true, force: true });
  };
}
