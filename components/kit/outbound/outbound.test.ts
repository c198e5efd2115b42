import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isPublicAddress } from './address.ts';
import { createOutbound, OutboundError, outboundAllowed } from './outbound.ts';

describe('addresses', () => {
  it.each([
    '127.0.0.1',
    '0.0.0.0',
    '10.1.2.3',
    '172.31.255.255',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fd12:3456::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
    '2001:db8::1',
    'localhost',
    '',
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450:4001::1'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );
});

const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '/redirect': (response) => response.writeHead(302, { location: '/ok' }).end(),
  '/large': (response) => response.end(Buffer.alloc(262_145)),
  '/limit': (response) => response.end(Buffer.alloc(262_144)),
  '/gzip': (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x')),
  '/drip': (response) => {
    const timer = setInterval(() => response.write('x'), 50);
    response.once('close', () => clearInterval(timer));
  },
  '/cut': (response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('x');
    setTimeout(() => response.socket?.destroy(), 20);
  },
};

describe('requests to addresses that people supply', () => {
  let server: Server;
  let origin = '';
  let port = 0;
  let connections = 0;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const answer = answers[request.url ?? ''];
      if (answer === undefined) response.end(JSON.stringify({ method: request.method }));
      else answer(response);
    });
    server.on('connection', () => {
      connections += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
    origin = `http://127.0.0.1:${port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const faultOf = async (act: Promise<unknown>) =>
    act.then(
      () => undefined,
      (error: unknown) => (error instanceof OutboundError ? error.fault : String(error)),
    );

  it.each([
    'https://127.0.0.1:PORT/',
    'https://localhost:PORT/',
    'https://2130706433:PORT/',
    'https://0x7f.1:PORT/',
    'https://0177.0.0.1:PORT/',
    'https://127.1:PORT/',
    'https://0.0.0.0:PORT/',
    'https://[::1]:PORT/',
    'https://[::ffff:127.0.0.1]:PORT/',
    'https://169.254.169.254/',
    'http://127.0.0.1:PORT/',
    'http://example.com/',
    'https://user:word@example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'not an address',
  ])('%s is refused, and nothing is dialled', async (text) => {
    const outbound = createOutbound({ allowed: [] });
    const before = connections;
    expect(await faultOf(outbound.send(text.replace('PORT', String(port))))).toBe('address');
    expect(connections).toBe(before);
    await outbound.close();
  });

  it('signed answers may come over http, of public hosts alone', async () => {
    const asked: string[] = [];
    const outbound = createOutbound({
      allowed: [],
      lookup: async (host) => {
        asked.push(host);
        return [{ address: '127.0.0.1', family: 4 }];
      },
    });
    const before = connections;
    const plain = (host: string) => faultOf(outbound.send(`http://${host}:${port}/`, { isSigned: true }));
    for (const host of ['127.0.0.1', '[::1]', '2130706433', '169.254.169.254', 'user:word@example.com'])
      expect(await plain(host), host).toBe('address');
    expect(asked).toEqual([]);
    expect(await plain('lists.example')).toBe('address');
    expect(await faultOf(outbound.send('ftp://lists.example/', { isSigned: true }))).toBe('address');
    expect([asked, connections]).toEqual([['lists.example'], before]);
    await outbound.close();
  });

  it('any spelling of a private IPv4 address is refused', async () => {
    const outbound = createOutbound({ allowed: [] });
    const part = fc.nat({ max: 255 });
    const spelled = (value: number, base: number) =>
      base === 16 ? `0x${value.toString(16)}` : base === 8 ? `0${value.toString(8)}` : String(value);
    const base = fc.constantFrom(8, 10, 16);
    const parts = fc.tuple(fc.constantFrom(10, 127), part, part, part);
    fc.assert(
      fc.property(parts, fc.tuple(base, base, base, base), (address, bases) => {
        const host = address.map((value, index) => spelled(value, bases[index] ?? 10)).join('.');
        const whole = spelled(
          address.reduce((sum, value) => sum * 256 + value, 0),
          bases[0],
        );
        expect([outbound.admits(`https://${host}/`), outbound.admits(`https://${whole}/`)]).toEqual([
          false,
          false,
        ]);
      }),
    );
    await outbound.close();
  });

  it('a name is judged when it is dialled: one that turns private later reaches nothing', async () => {
    const before = connections;
    let asked = 0;
    const outbound = createOutbound({
      allowed: [],
      lookup: async () => {
        asked += 1;
        return [{ address: asked === 1 ? '127.0.0.1' : '10.0.0.1', family: 4 }];
      },
    });
    expect(outbound.admits(`https://rebinding.example:${port}/`)).toBe(true);
    expect(await faultOf(outbound.send(`https://rebinding.example:${port}/`))).toBe('address');
    expect([connections, asked]).toEqual([before, 1]);
    await outbound.close();
  });

  it('an exact origin is allowed, and no other one', async () => {
    const outbound = createOutbound({ allowed: [origin] });
    expect((await outbound.send(`${origin}/x`)).body.toString()).toBe('{"method":"GET"}');
    expect(await faultOf(outbound.send(`http://localhost:${port}/`))).toBe('address');
    const answer = await outbound.fetch(`${origin}/x`, { method: 'POST', body: 'a=1' });
    expect([answer.status, await answer.json()]).toEqual([200, { method: 'POST' }]);
    await outbound.close();
  });

  it('redirects, large, compressed, slow and cut answers are refused', async () => {
    const outbound = createOutbound({ allowed: [origin] });
    expect(await faultOf(outbound.send(`${origin}/redirect`))).toBe('redirect');
    expect(await faultOf(outbound.send(`${origin}/large`))).toBe('too-large');
    expect((await outbound.send(`${origin}/limit`)).body.length).toBe(262_144);
    expect(await faultOf(outbound.send(`${origin}/gzip`))).toBe('encoding');
    const limits = { timeoutMs: 300, maxBytes: 1_000_000 };
    expect(await faultOf(outbound.send(`${origin}/drip`, { limits }))).toBe('timeout');
    expect(await faultOf(outbound.send(`${origin}/cut`))).toBe('unreachable');
    expect(await faultOf(outbound.send('https://127.0.0.1:1/', { limits }))).toBe('address');
    await outbound.close();
  });

  it('the setting takes exact origins', () => {
    expect(outboundAllowed.parse(' http://127.0.0.1:9000 ,https://idp.city.example')).toEqual([
      'http://127.0.0.1:9000',
      'https://idp.city.example',
    ]);
    for (const wrong of ['127.0.0.1', 'https://x.example/path', 'https://*.example/']) {
      expect(outboundAllowed.safeParse(wrong).success, wrong).toBe(false);
    }
  });
});
