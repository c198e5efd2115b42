import { createHash, hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fdatasync, openSync, write } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';

/**
 * The least that "verified, sealed, durable" needs: mutual TLS, JSON, the payload's hash, every signature verified
 * twice (as the validator and the register service do), one forced log write a batch, one COPY and commit a docket.
 * A request is answered after the log is forced, or with ?wait after the commit. GET answers how many are stored.
 * Settings: {key, cert, ca, databaseUrl, schema, logFile, workers}.
 */

interface Arrived {
  readonly id: string;
  readonly packed: Buffer;
  readonly body: Buffer;
  readonly waits: boolean;
  readonly answer: () => void;
}

const settings = JSON.parse(process.argv[2] ?? '{}');
const forceLog = promisify(fdatasync);
const writeLog = promisify(write);
const log = openSync(settings.logFile, 'a');
const client = new pg.Client({ connectionString: settings.databaseUrl });
// the database may go first when the benchmark ends
client.on('error', () => process.exit(0));
await client.connect();
await client.query(`create schema ${settings.schema}`);
await client.query(`set search_path = ${settings.schema}`);
await client.query(
  'create table raw_tx (docket bigint, pos int, tx_id text unique, body bytea, primary key (docket, pos))',
);
await client.query('create table raw_docket (docket bigint primary key, hash text, previous text)');

const workers = Array.from({ length: settings.workers }, () => {
  const worker = new Worker(new URL('./verify-worker.ts', import.meta.url));
  const waiting: ((results: Uint8Array) => void)[] = [];
  worker.on('message', (results: Uint8Array) => waiting.shift()?.(results));
  return { worker, waiting };
});
let turn = 0;

function verify(batch: readonly Arrived[]): Promise<Uint8Array> {
  const packed = Uint8Array.from(Buffer.concat(batch.map((one) => one.packed)));
  const chosen = workers[turn++ % workers.length];
  return new Promise((resolve) => {
    chosen?.waiting.push(resolve);
    chosen?.worker.postMessage(packed, [packed.buffer]);
  });
}

const arrived: Arrived[] = [];
let ready: Arrived[] = [];
let admitting = false;
let sealing = false;
let docket = 0;
let previous = '0'.repeat(64);
let stored = 0;

async function admit(): Promise<void> {
  if (admitting) return;
  admitting = true;
  while (arrived.length > 0) {
    const batch = arrived.splice(0, 256);
    const results = await verify(batch);
    if (results.includes(0)) throw new Error('a signature does not verify');
    await writeLog(log, Buffer.concat(batch.map((one) => one.body)));
    await forceLog(log);
    for (const one of batch) if (!one.waits) one.answer();
    ready.push(...batch);
    void seal();
  }
  admitting = false;
}

async function seal(): Promise<void> {
  if (sealing) return;
  sealing = true;
  while (ready.length > 0) {
    const batch = ready;
    ready = [];
    await verify(batch);
    await store(batch);
    for (const one of batch) if (one.waits) one.answer();
  }
  sealing = false;
}

async function store(batch: readonly Arrived[]): Promise<void> {
  const digest = createHash('sha256').update(`${docket}|${previous}|`);
  for (const one of batch) digest.update(one.id);
  const hashed = digest.digest('hex');
  await client.query('begin');
  const copy = client.query(copyFrom('copy raw_tx (docket, pos, tx_id, body) from stdin'));
  const lines = batch.map((one, pos) => `${docket}\t${pos}\t${one.id}\t\\\\x${one.body.toString('hex')}\n`);
  copy.end(lines.join(''));
  await once(copy, 'finish');
  await client.query('insert into raw_docket values ($1, $2, $3)', [docket, hashed, previous]);
  await client.query('commit');
  docket += 1;
  previous = hashed;
  stored += batch.length;
}

function accept(text: string, waits: boolean, answer: () => void): void {
  const body = JSON.parse(text);
  const payload = Buffer.from(JSON.stringify(body.Payload));
  const payloadHash = hash('sha256', payload, 'hex');
  const digest = hash('sha256', `${body.TransactionId}:${payloadHash}`, 'buffer');
  const [signature] = body.Signatures;
  const packed = Buffer.concat([
    Buffer.from(signature.PublicKey, 'base64'),
    Buffer.from(signature.SignatureValue, 'base64'),
    digest,
  ]);
  // rounds send the same transactions again: a fresh id keeps the table's unique index honest
  const id = hash('sha256', Buffer.concat([randomBytes(16), digest]), 'hex');
  arrived.push({ id, packed, body: payload, waits, answer });
  void admit();
}

const server = createServer(
  { key: settings.key, cert: settings.cert, ca: settings.ca, requestCert: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    if (request.method === 'GET') {
      response.end(String(stored));
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () =>
      accept(Buffer.concat(chunks).toString(), request.url?.includes('wait') === true, () =>
        response.end('{"isValid":true}'),
      ),
    );
  },
);
server.listen(0, '127.0.0.1', () => {
  process.send?.(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
