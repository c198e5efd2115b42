import { createServer } from 'node:https';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { RawAdmission } from './admission.ts';
import { openLog } from './log.ts';
import { type RawTransaction, readSubmission, unpackTransactions } from './transaction.ts';
import { startVerifiers } from './verifiers.ts';
import { RawVoting } from './voting.ts';
import { openWire, serveFrames } from './wire.ts';

/**
 * The minimum of a validator, with the hops and the forced writes of the product: admission (`admission.ts`),
 * announcements to the other members, votes (`voting.ts`). A request is answered once its transaction is forced to
 * disk. `/load` only keeps the lines of its body in memory, and `/feed` submits them. Settings: {key, cert, ca,
 * logFile, workers, storePort, signerPort, self, keys}. It sends its port and waits for the ports of all members.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const { self } = settings;
const store = await openWire(settings, settings.storePort);
const signer = await openWire(settings, settings.signerPort);
const log = openLog(settings.logFile);
const { backend } = loadEd25519();
const joined = Promise.withResolvers<RawVoting>();
const voting = joined.promise;

const admission = new RawAdmission({
  store,
  log,
  verify: startVerifiers(settings.workers),
  accepted: (transactions, ofClients) => void voting.then((votes) => votes.add(transactions, ofClients)),
});

const port = await serveFrames(
  settings,
  (frame) =>
    new Promise((resolve) =>
      admission.submit(readSubmission(frame.toString()), () => resolve(Buffer.alloc(0))),
    ),
  (frame) => {
    if (frame[0] === 'h'.charCodeAt(0)) admission.hinted(unpackTransactions(frame.subarray(6)));
    else void voting.then((votes) => votes.take(frame));
  },
);

/** Loaded before the clock starts, for the row without client hops. */
let loaded: RawTransaction[] = [];

function feed(): Promise<unknown> {
  const transactions = loaded;
  loaded = [];
  return Promise.all(
    transactions.map((each) => new Promise<void>((resolve) => admission.submit(each, resolve))),
  );
}

const acts: Readonly<Record<string, (text: string) => Promise<unknown>>> = {
  '/': (text) => new Promise<void>((resolve) => admission.submit(readSubmission(text), resolve)),
  '/load': async (text) => {
    loaded = text.split('\n').map(readSubmission);
  },
  '/feed': feed,
};

const server = createServer(
  { ...settings, requestCert: true, minVersion: 'TLSv1.3' },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      await acts[request.url ?? '']?.(Buffer.concat(chunks).toString());
      response.end('{"isValid":true}');
    });
  },
);
// This program ends with the benchmark, however that ends.
process.once('disconnect', () => process.exit(0));
process.once('message', async (ports) => {
  const wires = String(ports)
    .split(',')
    .map((each, member) => (member === self ? undefined : openWire(settings, Number(each))));
  const others = await Promise.all(wires);
  const keys = settings.keys.map((key: string) => Buffer.from(key, 'base64'));
  const verifyOne = (key: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean =>
    backend.verify(key, digest, signature);
  joined.resolve(new RawVoting({ self, keys, log, store, signer, others, verifyOne }));
  process.send?.('joined');
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.(`${port} ${typeof address === 'object' && address !== null ? address.port : 0}`);
});
