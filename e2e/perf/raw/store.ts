import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { unpackTransactions } from './transaction.ts';
import { checkBytes, startVerifiers } from './verifiers.ts';
import { openWire, serveFrames, type Wire } from './wire.ts';

/**
 * The minimum of the register service: one indexed query for every admission batch, and for every docket all its
 * signatures verified, one COPY and one commit. Its own listener forwards single transactions to the validator and
 * answers when they are stored; GET answers their number, and `/payloads/` with ids their payloads. Settings: {key, cert,
 * ca, databaseUrl, schema, workers}. A frame is `?` and ids, or `!`, the count of certificate signatures and attestations,
 * those, and transactions.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const verify = startVerifiers(settings.workers);
const database = {
  connectionString: settings.databaseUrl,
  options: `-c search_path=${settings.schema}`,
  max: 4,
};
const writer = new pg.Client(database);
const reader = new pg.Pool(database);
// The database may end first when the benchmark ends.
const onLost = (): never => process.exit(0);
writer.on('error', onLost);
reader.on('error', onLost);
await writer.connect();
await writer.query(`create schema ${settings.schema}`);
await writer.query(
  'create table raw_tx (docket bigint, pos int, tx_id text unique, body bytea, primary key (docket, pos))',
);
await writer.query('create table raw_docket (docket bigint primary key, hash text, previous text)');

let docket = 0;
let previous = '0'.repeat(64);
let stored = 0;
const waiting = new Map<string, () => void>();

async function lookup(ids: string): Promise<Uint8Array> {
  const text = 'select tx_id from raw_tx where tx_id = any($1)';
  const { rows } = await reader.query({ name: 'lookup', text, values: [ids.split(',')] });
  return Buffer.from(String(rows.length));
}

async function store(frame: Buffer): Promise<Uint8Array> {
  const votes = frame[0] ?? 0;
  const start = 1 + votes * checkBytes;
  const checks = Array.from({ length: votes }, (_, place) =>
    frame.subarray(1 + place * checkBytes, 1 + (place + 1) * checkBytes),
  );
  const batch = unpackTransactions(frame.subarray(start)).map((one) => ({
    ...one,
    id: one.id.toString('hex'),
  }));
  await verify([...checks, ...batch.map(({ check }) => check)]);
  const digest = createHash('sha256').update(`${docket}|${previous}|`);
  for (const { id } of batch) digest.update(id);
  const hashed = digest.digest('hex');
  await writer.query('begin');
  const copy = writer.query(copyFrom('copy raw_tx (docket, pos, tx_id, body) from stdin'));
  const lines = batch.map(({ id, body }, pos) => `${docket}\t${pos}\t${id}\t\\\\x${body.toString('hex')}\n`);
  copy.end(lines.join(''));
  await once(copy, 'finish');
  await writer.query('insert into raw_docket values ($1, $2, $3)', [docket, hashed, previous]);
  await writer.query('commit');
  docket += 1;
  previous = hashed;
  stored += batch.length;
  for (const { id } of batch) waiting.get(id)?.();
  return Buffer.alloc(0);
}

const payloads = '/payloads/';

/** A JSON array of the payloads of transactions, in the order of their ids in the path. */
async function readPayloads(path: string): Promise<string> {
  const ids = path.slice(payloads.length).split(',');
  const text = 'select tx_id, body from raw_tx where tx_id = any($1)';
  const { rows } = await reader.query({ name: 'payloads', text, values: [ids] });
  const found = new Map<string, Buffer>(rows.map(({ tx_id, body }) => [tx_id, body]));
  return `[${ids.map((id) => found.get(id)?.toString() ?? 'null').join()}]`;
}

let validator: Wire | undefined;
const port = await serveFrames(settings, (frame) => {
  const kind = frame.toString('latin1', 0, 1);
  return kind === '?' ? lookup(frame.toString('latin1', 1)) : store(frame.subarray(1));
});

async function submit(body: Buffer): Promise<void> {
  const id: string = JSON.parse(body.toString()).TransactionId;
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.set(id, resolve);
  await validator?.call(body);
  await promise;
  waiting.delete(id);
}

const server = createServer(
  { ...settings, requestCert: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    if (request.method === 'GET') {
      const { url = '/' } = request;
      if (url.startsWith(payloads)) void readPayloads(url).then((text) => response.end(text));
      else response.end(String(stored));
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => void submit(Buffer.concat(chunks)).then(() => response.end('{"isValid":true}')));
  },
);
process.on('message', (validatorPort) => {
  void openWire(settings, Number(validatorPort)).then((wire) => {
    validator = wire;
    process.send?.('connected');
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(`${port} ${typeof address === 'object' && address !== null ? address.port : 0}`);
});
