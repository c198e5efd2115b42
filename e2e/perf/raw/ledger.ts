import { hash, randomBytes } from 'node:crypto';
import { fdatasync, openSync, write } from 'node:fs';
import { createServer } from 'node:https';
import { promisify } from 'node:util';
import { checkBytes, startVerifiers } from './verifiers.ts';
import { openWire, serveFrames } from './wire.ts';

/**
 * The least a validator does, over the hops and with the forced writes of the product (decision D48): JSON, the payload's
 * hash, every signature verified once, the question to the store, one forced log write for a batch; for every docket a
 * proposal and two votes, each written to the log and signed by the signer one after the other, the decision written, an
 * attestation; then the docket to the store, while the next one is voted on. A request is answered once its transaction is
 * forced to disk. Settings: {key, cert, ca, logFile, workers, storePort, signerPort}.
 */

interface Arrived {
  readonly id: Buffer;
  readonly check: Buffer;
  readonly body: Buffer;
  readonly answer: () => void;
}

const settings = JSON.parse(process.argv[2] ?? '{}');
const store = await openWire(settings, settings.storePort);
const signer = await openWire(settings, settings.signerPort);
const verify = startVerifiers(settings.workers);
const log = openSync(settings.logFile, 'a');
const writeLog = promisify(write);
const forceDisk = promisify(fdatasync);

let logging: Promise<void> = Promise.resolve();
let unwritten: Buffer[] = [];

/** Appends that come while one is under way share the next write and force. */
function force(entry: Buffer): Promise<void> {
  unwritten.push(entry);
  if (unwritten.length > 1) return logging;
  logging = logging.then(async () => {
    const entries = unwritten;
    unwritten = [];
    await writeLog(log, Buffer.concat(entries));
    await forceDisk(log);
  });
  return logging;
}

const batchesAtOnce = 2;
const arrived: Arrived[] = [];
let ready: Arrived[] = [];
let admitting = 0;
let voting = false;
let storing: Promise<unknown> = Promise.resolve();

async function admit(): Promise<void> {
  if (admitting >= batchesAtOnce) return;
  admitting += 1;
  while (arrived.length > 0) {
    const batch = arrived.splice(0, 256);
    await verify(batch.map(({ check }) => check));
    await store.call(Buffer.from(`?${batch.map(({ id }) => id.toString('hex')).join(',')}`));
    await force(Buffer.concat(batch.map(({ body }) => body)));
    for (const one of batch) one.answer();
    ready.push(...batch);
    void seal();
  }
  admitting -= 1;
}

async function seal(): Promise<void> {
  if (voting) return;
  voting = true;
  while (ready.length > 0) {
    const batch = ready;
    ready = [];
    const digest = Buffer.from(hash('sha256', Buffer.concat(batch.map(({ id }) => id)), 'buffer'));
    let vote: Buffer = digest;
    for (let message = 0; message < 3; message++) {
      [vote] = await Promise.all([signer.call(digest), force(digest)]);
    }
    void force(digest);
    const attestation = await signer.call(digest);
    const checks = [vote, attestation].map((signed) => Buffer.concat([signed, digest]));
    const transactions = batch.flatMap(({ id, check, body }) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(body.length);
      return [id, check, length, body];
    });
    const frame = Buffer.concat([Buffer.from('!'), ...checks, ...transactions]);
    storing = storing.then(() => store.call(frame));
    // no more than one docket waits while another one is stored
    if (ready.length < 250) await storing;
  }
  voting = false;
}

function accept(id: Buffer, text: string, answer: () => void): void {
  const submission = JSON.parse(text);
  const body = Buffer.from(JSON.stringify(submission.Payload));
  const payloadHash = hash('sha256', body, 'hex');
  const digest = hash('sha256', `${submission.TransactionId}:${payloadHash}`, 'buffer');
  const [signature] = submission.Signatures;
  const check = Buffer.concat([
    Buffer.from(signature.PublicKey, 'base64'),
    Buffer.from(signature.SignatureValue, 'base64'),
    digest,
  ]);
  if (check.length !== checkBytes) throw new RangeError('a signature has the wrong size');
  arrived.push({ id, check, body, answer });
  void admit();
}

const port = await serveFrames(
  settings,
  (frame) =>
    new Promise((resolve) =>
      accept(Buffer.from(frame.subarray(0, 32)), frame.toString('utf8', 32), () => resolve(Buffer.alloc(0))),
    ),
);

const server = createServer(
  { ...settings, requestCert: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () =>
      // rounds send the same transactions again: a fresh id keeps the table's unique index honest
      accept(randomBytes(32), Buffer.concat(chunks).toString(), () => response.end('{"isValid":true}')),
    );
  },
);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(`${port} ${typeof address === 'object' && address !== null ? address.port : 0}`);
});
