import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { startPostgres } from '../../standalone/postgres/embedded.ts';
import { type Database, type Migration, openDatabase } from './db.ts';

interface Schema {
  entry: { id: number };
}

const entries: Migration = {
  name: '0001-entry',
  up: async (db) => {
    await sql`create table entry (id integer primary key)`.execute(db);
  },
};

async function ownPostgres() {
  const directory = mkdtempSync(join(tmpdir(), 'chy-out-'));
  const { log } = testRuntime('service-test');
  const launch = () =>
    startPostgres({ dataDir: join(directory, 'd'), socketDir: join(directory, 's'), fsync: false, log });
  let server = await launch();
  onTestFinished(async () => {
    await server.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    url: server.url('postgres'),
    stop: () => server.stop(),
    start: async () => {
      server = await launch();
    },
  };
}

/** Writes entries one after the other until stopped, and records which were confirmed and which were refused. */
function writeOn(db: Database<Schema>, firstId: number) {
  const confirmed: number[] = [];
  const refused: unknown[] = [];
  let writing = true;
  const done = (async () => {
    for (let id = firstId; writing; id += 10) {
      try {
        await db.transact((tx) => tx.insertInto('entry').values({ id }).execute());
        confirmed.push(id);
      } catch (error) {
        refused.push(error);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  })();
  return {
    confirmed,
    refused,
    stop: async () => {
      writing = false;
      await done;
    },
  };
}

describe('an outage of PostgreSQL under load', () => {
  it('refuses with unavailable meanwhile, recovers by itself and loses nothing that was confirmed', async () => {
    const postgres = await ownPostgres();
    const { log, telemetry } = testRuntime('service-test');
    const migrations = [entries];
    const db = await openDatabase<Schema>({
      url: postgres.url,
      schema: 'outage',
      log,
      telemetry,
      migrations,
    });
    const writers = [1, 2].map((firstId) => writeOn(db, firstId));
    const everyone = (test: (writer: (typeof writers)[number]) => boolean) => () => writers.every(test);
    await waitFor(
      everyone((writer) => writer.confirmed.length > 20),
      { what: 'load' },
    );

    await postgres.stop();
    await waitFor(
      everyone((writer) => writer.refused.length > 0),
      { what: 'refusals' },
    );
    await expect(db.ping()).rejects.toMatchObject({ kind: 'unavailable' });

    await postgres.start();
    const before = writers.map((writer) => writer.confirmed.length);
    await waitFor(
      () => writers.every((writer, index) => writer.confirmed.length > (before[index] ?? 0) + 5),
      {
        what: 'writes to go on',
      },
    );
    await Promise.all(writers.map((writer) => writer.stop()));

    const refusals = writers.flatMap((writer) => writer.refused);
    expect(refusals.filter((error) => !isAppError(error, 'unavailable'))).toEqual([]);
    const stored = new Set((await db.read.selectFrom('entry').select('id').execute()).map((row) => row.id));
    const lost = writers.flatMap((writer) => writer.confirmed).filter((id) => !stored.has(id));
    expect(lost).toEqual([]);
    await db.close();
  });
});
