import { connect, type Socket } from 'node:net';
import { inParallel } from '../../harness/wait.ts';
import type { ClientPlan, Dialect, ToClients } from './crowd.ts';
import { clientFrame, RecordCounter } from './frames.ts';

/**
 * Many WebSocket clients in one process, which count records. They share one buffer for reading. The first one also
 * reports the text of each message to the parent.
 */

const headEnd = '\r\n\r\n';
const buffer = Buffer.alloc(64 * 1024);
const opening = 32;
const key = Buffer.alloc(16, 1).toString('base64');

interface Server {
  readonly port: number;
  readonly dialect: Dialect;
}

const sockets: Socket[] = [];
const tally = { records: 0, goal: 0 };

function say(message: object): void {
  process.send?.(JSON.stringify(message));
}

function count(records: number): void {
  const before = tally.records;
  tally.records += records;
  if (before < tally.goal && tally.records >= tally.goal) say({ is: 'reached' });
}

/** Opens a connection; resolves when the server has agreed and answered the greetings. */
function open({ port, dialect }: Server, plan: ClientPlan, isWitness: boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const counter = new RecordCounter(dialect.unit);
  let head = '';
  let isUpgraded = false;
  let waitsFor = plan.replies;
  let message: Buffer[] = [];
  const report = (piece: Buffer, isEnd: boolean) => {
    message.push(Buffer.from(piece));
    if (!isEnd) return;
    say({ is: 'message', text: Buffer.concat(message).toString() });
    message = [];
  };
  const onFrames = (bytes: Buffer) => {
    const records = counter.push(bytes, isWitness && waitsFor === 0 ? report : undefined);
    if (waitsFor === 0) return count(records);
    waitsFor -= records;
    if (waitsFor === 0) resolve();
    return undefined;
  };
  const onHead = (bytes: Buffer) => {
    head += bytes.toString('latin1');
    const end = head.indexOf(headEnd);
    if (end === -1) return;
    if (!head.startsWith('HTTP/1.1 101 ')) reject(new Error(`a hub answered ${head.slice(0, 200)}`));
    isUpgraded = true;
    for (const greeting of plan.greetings) socket.write(clientFrame(greeting));
    if (waitsFor === 0) resolve();
    const rest = head.slice(end + headEnd.length);
    if (rest !== '') onFrames(Buffer.from(rest, 'latin1'));
  };
  const callback = (length: number) => {
    const bytes = buffer.subarray(0, length);
    if (isUpgraded) onFrames(bytes);
    else onHead(bytes);
    return true;
  };
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer, callback } });
  const fail = (reason: string) => {
    reject(new Error(reason));
    say({ is: 'failed', text: reason });
  };
  socket.on('error', (error) => fail(error.message));
  socket.on('close', () => fail('a hub closed the connection of a client'));
  socket.write(
    `GET ${plan.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}${headEnd}`,
  );
  sockets.push(socket);
  return promise;
}

async function openAll(server: Server, plans: readonly ClientPlan[]): Promise<void> {
  const [first, ...others] = plans;
  // The first one joins its group before the others, so that it is the first to get a signal.
  if (first !== undefined) await open(server, first, true);
  await inParallel(others, opening, (plan) => open(server, plan, false));
  if (server.dialect.ping !== undefined) keepOpen(server.dialect.ping);
  say({ is: 'open' });
}

/** A hub closes connections that are silent for 30 s. */
const pingMs = 10_000;

function keepOpen(ping: string): void {
  const frame = clientFrame(ping);
  setInterval(() => {
    for (const socket of sockets) socket.write(frame);
  }, pingMs);
}

process.on('message', (text) => {
  const message: ToClients = JSON.parse(String(text));
  if (message.act === 'open') {
    openAll(message, message.plans).catch((error: unknown) => say({ is: 'failed', text: String(error) }));
  } else {
    tally.records = 0;
    tally.goal = message.records;
    say({ is: 'ready' });
  }
});
process.send?.('started');
// The benchmark may end first.
process.once('disconnect', () => process.exit(0));
