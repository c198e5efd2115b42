import { once } from 'node:events';
import { Agent } from 'node:https';
import pg from 'pg';
import { WebSocket } from 'ws';
import { connectBus } from '#kit/bus/bus.ts';
import { createLogger } from '#kit/log/log.ts';
import { environmentOf } from '../harness/service-caller.ts';
import { until } from '../harness/wait.ts';
import { hubGreetings } from './hubs/crowd.ts';
import { post, presign, validatePath } from './load.ts';
import { startRaw } from './raw/child.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

/** The first half warms both programs up and is not counted. */
const samples = 100;
const subject = 'bench.rows';

/** Instants of `performance.now()`. */
interface Instants {
  /** The row of the last event was committed: PostgreSQL notifies at the commit. */
  committedAt: number;
  heardAt: number;
}

/** Notes when a row of a table is committed. */
async function watchCommits(
  databaseUrl: string,
  [schema, table]: readonly [schema: string, table: string],
  instants: Instants,
): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseUrl });
  // The database may end first when the benchmark fails.
  client.on('error', () => undefined);
  await client.connect();
  await client.query(`create or replace function ${schema}.bench_committed() returns trigger language plpgsql as
    $$ begin perform pg_notify('bench_committed', ''); return null; end $$`);
  await client.query(`create or replace trigger bench_committed after insert on ${schema}.${table}
    for each statement execute function ${schema}.bench_committed()`);
  await client.query('listen bench_committed');
  client.on('notification', () => {
    instants.committedAt = performance.now();
  });
  return client;
}

/** A client at a listener with mutual TLS, which notes when it hears of an event. */
async function connectClient(url: string, stage: Stage, instants: Instants, wanted: string) {
  const { key, cert, ca } = stage.svid;
  const agent = new Agent({ key, cert, ca, checkServerIdentity: () => undefined });
  const socket = new WebSocket(url, { agent });
  let text = '';
  socket.on('message', (data: Buffer) => {
    text = data.toString();
    if (text.includes(wanted)) instants.heardAt = performance.now();
  });
  await once(socket, 'open');
  return { socket, lastText: () => text };
}

/** Milliseconds from the commit that `act` leads to until the client has heard of it. */
async function oneSample(instants: Instants, act: () => Promise<unknown>): Promise<number> {
  instants.committedAt = 0;
  instants.heardAt = 0;
  await act();
  return until('the signal of a row', 60_000, async () =>
    instants.committedAt > 0 && instants.heardAt > 0 ? instants.heardAt - instants.committedAt : undefined,
  );
}

interface Side {
  sample(): Promise<number>;
  close(): Promise<void>;
}

/** A real seal: the register service commits a docket with its event, and the register hub sends its signals. */
async function openOurs(stage: Stage): Promise<Side> {
  const instants: Instants = { committedAt: 0, heardAt: 0 };
  const { DATABASE_URL = '' } = environmentOf(stage.system.state, 'register');
  const commits = await watchCommits(DATABASE_URL, ['register', 'outbox'], instants);
  const url = `${stage.addressOf('register', 'HTTPS').replace('https', 'wss')}/hubs/register?access_token=${stage.token}`;
  const { socket, lastText } = await connectClient(url, stage, instants, '"TransactionConfirmed"');
  const { greetings } = hubGreetings('SubscribeToRegister', [stage.registerId]);
  for (const greeting of greetings) socket.send(greeting);
  await until('the subscription', 10_000, async () => (lastText().includes('"type":3') ? true : undefined));
  if (lastText().includes('"error"')) throw new Error(lastText());
  const validator = stage.pool(stage.validatorUrls()[0] ?? '', 1);
  const bodies = [...presign(stage.registerId, samples)];
  return {
    sample: () => oneSample(instants, () => post(validator, validatePath, stage.token, bodies.pop() ?? '')),
    close: async () => {
      socket.terminate();
      await commits.query('drop trigger bench_committed on register.outbox');
      await Promise.all([commits.end(), validator.close()]);
    },
  };
}

/** A row, a wake signal, one select and one send. */
async function openRaw(stage: Stage): Promise<Side> {
  const instants: Instants = { committedAt: 0, heardAt: 0 };
  const database = new pg.Client({ connectionString: stage.rawDatabaseUrl });
  await database.connect();
  await database.query(
    'create table raw_rows (sequence bigint generated always as identity primary key, text text)',
  );
  const commits = await watchCommits(stage.rawDatabaseUrl, ['public', 'raw_rows'], instants);
  const { NATS_URL: natsUrl = '' } = environmentOf(stage.system.state, 'register');
  const log = createLogger({ service: 'bench', level: 'silent' });
  const bus = await connectBus({ url: natsUrl, name: 'bench', log });
  const raw = await startRaw(new URL('./raw/one-row.ts', import.meta.url), {
    ...stage.svid,
    natsUrl,
    subject,
    databaseUrl: stage.rawDatabaseUrl,
  });
  const { socket } = await connectClient(
    `wss://127.0.0.1:${raw.said}/`,
    stage,
    instants,
    'TransactionConfirmed',
  );
  const text = JSON.stringify({ type: 1, target: 'TransactionConfirmed', arguments: ['x'.repeat(180)] });
  return {
    sample: () =>
      oneSample(instants, async () => {
        await database.query({
          name: 'row',
          text: 'insert into raw_rows (text) values ($1)',
          values: [text],
        });
        bus.publish(subject);
      }),
    close: async () => {
      socket.terminate();
      await raw.stop();
      await Promise.all([bus.close(), commits.end()]);
      await database.query('drop table raw_rows');
      await database.end();
    },
  };
}

/** From the commit of a docket until a client of the register hub has the signal of its transaction, on an idle system. */
export async function sealToClient(stage: Stage): Promise<Row> {
  const [ours, raw] = [await openOurs(stage), await openRaw(stage)];
  const figures = { ours: [] as number[], raw: [] as number[] };
  try {
    for (let n = 0; n < samples; n++) {
      figures.ours.push(await ours.sample());
      figures.raw.push(await raw.sample());
    }
  } finally {
    await Promise.all([ours.close(), raw.close()]);
  }
  return {
    measure: 'seal to client, idle, p50',
    ours: figures.ours.slice(samples / 2),
    raw: figures.raw.slice(samples / 2),
    unit: 'ms',
    bound: { kind: 'multiple', atMost: 2 },
  };
}
