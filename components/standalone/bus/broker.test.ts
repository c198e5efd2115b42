import { spawn } from 'node:child_process';
import { connect as openSocket, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BusServer, busContract } from '#kit/bus/bus.contract.ts';
import { connectBus } from '#kit/bus/bus.ts';
import { createLogger } from '#kit/log/log.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type Broker, startBroker } from './broker.ts';
import { type Operation, Parser, ProtocolError } from './parser.ts';
import { isPublishSubject, isSubscribeSubject, matches } from './subjects.ts';

const log = createLogger({ service: 'test', level: 'silent' });
const host = '127.0.0.1';

async function embedded(): Promise<BusServer> {
  let broker = await startBroker({ host, port: 0, log });
  const { url, port } = broker;
  return {
    url,
    stop: () => broker.stop(),
    restart: async () => {
      broker = await startBroker({ host, port, log });
    },
  };
}

async function real(binary: string): Promise<BusServer> {
  const probe = await startBroker({ host, port: 0, log });
  const { port, url } = probe;
  await probe.stop();
  const start = async () => {
    const child = spawn(binary, ['-a', host, '-p', String(port)], { stdio: 'ignore' });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    await waitFor(() => speak(port, '').then((text) => text.startsWith('INFO')));
    return { child, ended };
  };
  let server = await start();
  return {
    url,
    stop: async () => {
      server.child.kill('SIGTERM');
      await server.ended;
    },
    restart: async () => {
      server = await start();
    },
  };
}

busContract('embedded broker', embedded);
const natsServer = process.env['CHANCERY_TEST_NATS_SERVER'];
if (natsServer === undefined) {
  describe('bus: nats-server', () => {
    it.skip('set CHANCERY_TEST_NATS_SERVER to the path of a nats-server binary to run the suite against it', () => {});
  });
} else {
  busContract('nats-server', () => real(natsServer));
}

/**
 * Sends text and collects the answer until the server closes, `until` matches or a deadline of half a second passes.
 */
function speak(port: number, text: string, until = /INFO.*\r\n/): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = '';
  const socket: Socket = openSocket(port, host);
  const timer = setTimeout(() => socket.destroy(), 3_000);
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    if (until.test(received)) socket.destroy();
  });
  socket.on('error', reject);
  socket.on('close', () => {
    clearTimeout(timer);
    resolve(received);
  });
  socket.write(text);
  return promise;
}

describe('broker protocol', () => {
  const runtime = testRuntime('test');
  let broker: Broker | undefined;
  let port = 0;
  beforeAll(async () => {
    broker = await startBroker({
      host,
      port: 0,
      log: runtime.log,
      payloadLimitBytes: 1_000,
      pendingLimitBytes: 200_000,
    });
    port = broker.port;
  });
  afterAll(() => broker?.stop());
  const never = /^never/;

  it('sends INFO first', async () => {
    const greeting = await speak(port, '');
    const info: unknown = JSON.parse(greeting.slice(5));
    expect(info).toMatchObject({ headers: true, max_payload: 1_000, port, proto: 1 });
  });

  it('answers in verbose mode and to PING, in lower case too', async () => {
    const text = await speak(port, 'connect {"verbose":true}\r\nsub a 1\r\nping\r\n', /PONG/);
    expect(text).toMatch(/\+OK\r\n\+OK\r\nPONG\r\n$/);
  });

  const violations: Record<string, [string, string]> = {
    'an unknown operation': ['GET / HTTP/1.1\r\n', 'Unknown Protocol Operation'],
    'a payload that does not end where it says': ['PUB a 2\r\nabc\r\n', 'Unknown Protocol Operation'],
    'a payload over the limit': [`PUB a 1001\r\n`, 'Maximum Payload Violation'],
    'an endless control line': ['SUB '.padEnd(5_000, 'x'), 'Maximum Control Line Exceeded'],
    'a size that is no number': ['PUB a -1\r\n', 'Parser Error'],
    'a size that is too large for one': ['PUB a 99999999999999999999\r\n', 'Parser Error'],
    'headers longer than the message': ['HPUB a 20 10\r\n', 'Parser Error'],
    'too many arguments': ['SUB a b c d\r\n', 'Parser Error'],
    'too few arguments': ['UNSUB\r\n', 'Parser Error'],
    'a CONNECT without JSON': ['CONNECT {nonsense\r\n', 'Parser Error'],
    'headers that were not agreed on': [
      'CONNECT {}\r\nHPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n',
      'Message Headers Not Supported',
    ],
  };
  for (const [name, [text, answer]] of Object.entries(violations)) {
    it(`closes on ${name}`, async () => {
      expect(await speak(port, text, never)).toMatch(new RegExp(`-ERR '${answer}'\r\n$`));
    });
  }

  it('reports an invalid subject and continues', async () => {
    const text = await speak(port, 'SUB a..b 1\r\nPUB a.* 0\r\n\r\nPING\r\n', /PONG/);
    expect(text).toContain("-ERR 'Invalid Subject'");
    expect(text).toContain("-ERR 'Invalid Publish Subject'");
  });

  it('removes headers for a client that did not request them', async () => {
    const listening = speak(port, 'CONNECT {}\r\nSUB plain 1\r\nPING\r\n', /MSG.*\r\n.*\r\n$/);
    const send = () =>
      speak(port, 'CONNECT {"headers":true}\r\nHPUB plain 12 14\r\nNATS/1.0\r\n\r\nhi\r\nPING\r\n', /PONG/);
    const timer = setInterval(send, 50);
    const text = await listening;
    clearInterval(timer);
    expect(text).toMatch(/MSG plain 1 2\r\nhi\r\n/);
  });

  it('disconnects a client that does not read, and no other', async () => {
    const slow = openSocket(port, host);
    slow.on('error', () => undefined);
    slow.write('CONNECT {}\r\nSUB flood 1\r\nPING\r\n');
    await new Promise((resolve) => slow.once('data', resolve));
    slow.pause();
    const fast = openSocket(port, host);
    fast.on('data', () => undefined);
    fast.write('CONNECT {}\r\n');
    const message = Buffer.from(`PUB flood 1000\r\n${'x'.repeat(1000)}\r\n`);
    const burst = Buffer.concat(Array.from({ length: 1_000 }, () => message));
    await waitFor(() => {
      fast.write(burst);
      return runtime.lines.some((line) => line['msg'] === 'slow bus client disconnected');
    });
    const closed = new Promise((resolve) => slow.once('close', resolve));
    slow.resume();
    await closed;
    expect(await speak(port, 'PING\r\n', /PONG/)).toContain('PONG');
    expect(fast.destroyed).toBe(false);
    slow.destroy();
    fast.destroy();
  });

  it('refuses a port in use', async () => {
    await expect(startBroker({ host, port, log })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'BROKER_LISTEN_FAILED',
    });
  });
});

describe('parser', () => {
  const read = (parser: Parser, bytes: Buffer): Operation[] => [...parser.read(bytes)];
  const stream = Buffer.from(
    'CONNECT {"headers":true,"no_responders":true}\r\nSUB a.* q 1\r\nPUB a.b reply 5\r\nhe\r\nl\r\nHPUB x 12 14\r\nNATS/1.0\r\n\r\nhi\r\nUNSUB 1 4\r\nPING\r\nPONG\r\nPUB empty 0\r\n\r\n',
  );

  it('gives the same operations whatever chunks the bytes arrive in', () => {
    const whole = read(new Parser(1_000), stream);
    expect(whole.map((operation) => operation.kind)).toEqual([
      'connect',
      'sub',
      'pub',
      'pub',
      'unsub',
      'ping',
      'pong',
      'pub',
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: stream.length }), { maxLength: 20 }), (cuts) => {
        const parser = new Parser(1_000);
        const edges = [0, ...cuts.sort((a, b) => a - b), stream.length];
        const parts = edges.slice(1).map((end, at) => stream.subarray(edges[at], end));
        expect(parts.flatMap((part) => read(parser, part))).toEqual(whole);
      }),
    );
  });

  it('never throws anything but a protocol error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          read(new Parser(100), Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});

describe('subjects', () => {
  it('are judged', () => {
    for (const good of ['a', 'a.b', 'a.b-c_d.$x']) expect(isPublishSubject(good)).toBe(true);
    for (const bad of ['', '.', 'a.', '.a', 'a..b', 'a.*', '>', 'x'.repeat(2_000)]) {
      expect(isPublishSubject(bad)).toBe(false);
    }
    for (const good of ['*', '>', 'a.*.b', 'a.>', 'a*b']) expect(isSubscribeSubject(good)).toBe(true);
    for (const bad of ['>.a', 'a.>.b', 'a..>']) expect(isSubscribeSubject(bad)).toBe(false);
  });
  it('a pattern made from a subject matches it', () => {
    const token = fc.stringMatching(/^[a-z0-9]{1,5}$/);
    fc.assert(
      fc.property(
        fc.array(token, { minLength: 1, maxLength: 6 }),
        fc.nat(),
        fc.boolean(),
        (tokens, at, open) => {
          const pattern = tokens.map((text, index) => (index === at % tokens.length ? '*' : text));
          expect(matches(pattern, tokens)).toBe(true);
          expect(matches([...pattern, '>'], tokens)).toBe(false);
          if (open) expect(matches([...pattern.slice(0, -1), '>'], tokens)).toBe(true);
        },
      ),
    );
  });
});

describe('bus without a server', () => {
  it('starts, keeps wake signals and connects once a server is available', async () => {
    const runtime = testRuntime('test');
    const probe = await startBroker({ host, port: 0, log });
    const { port, url } = probe;
    await probe.stop();
    const bus = await connectBus({ url, name: 'early', log: runtime.log, firstConnectionMs: 100 });
    expect(bus.connected).toBe(false);
    let rings = 0;
    bus.subscribe('doorbell.x', () => {
      rings += 1;
    });
    bus.publish('doorbell.x');
    const broker = await startBroker({ host, port, log });
    await waitFor(() => bus.connected && rings > 0);
    await bus.close();
    await broker.stop();
  });
});
