import { createHash } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createOutbound } from '#kit/outbound/outbound.ts';
import { breachedByRange } from './breached.ts';
import { createPasswordPolicy } from './policy.ts';

const policy = createPasswordPolicy(12);
const judge = (password: string, ...words: string[]) => policy.judge(password, { words });

describe('password policy', () => {
  it.each([
    'correct horse battery staple',
    'x8#Kq2!vLm0p',
    'Zwölf Boxkämpfer jagen Viktor',
    '鍵は静かな森の奥で眠っています',
    'dragon!9381-2837-kestrel',
    'aB3$ '.repeat(51),
  ])('accepts %s', async (password) => {
    expect(await judge(password, 'maria.schmidt', 'Maria Schmidt', 'Acme', 'acme')).toEqual([]);
  });

  it.each([
    'password1234',
    'PASSWORD!!!!',
    'P@ssw0rd2024',
    'passwordpassword',
    '!!!Welcome2024',
    'qwertyuiopas',
    '123456789012',
    'aaaaaaaaaaaaaaa',
    'abcabcabcabc',
    'abcdefghijklmnop',
    '1q2w3e4r5t6y',
    'letmein123456',
    'trustno1trustno1',
    'zyxwvutsrqpo',
  ])('refuses the well-known %s', async (password) => {
    expect(await judge(password)).toContain('breached');
  });

  it.each([
    ['maria.schmidt1', 'maria.schmidt'],
    ['MariaSchmidt!!', 'Maria Schmidt'],
    ['acmeworks-2024', 'Acme Works'],
    ['Chancery2024!', 'nothing'],
    ['pl4tform-2026', 'nothing'],
  ])('refuses %s for an account that is known by %s', async (password, word) => {
    expect(await judge(password, word)).toContain('contextual');
  });

  it('counts code points after NFC, and checks the whole of a long password', async () => {
    expect(await judge('kj3 vq9 zx7')).toEqual(['too_short']);
    expect(await judge('🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋')).toEqual(['too_short']);
    expect(await judge('🜁🜂🜃🜄🜅🜆🜇🜈🜉🜊🜋🜌')).toEqual([]);
    expect(await judge('aB3$ '.repeat(52))).toEqual(['too_long']);
  });
});

describe('the service of breached passwords', () => {
  const password = 'nine purple lanterns glow';
  const digest = createHash('sha1').update(password).digest('hex').toUpperCase();
  let stop = () => undefined as unknown;
  afterEach(() => stop());

  const ask = async (answer: RequestListener) => {
    const asked: { url: string | undefined; padding: unknown }[] = [];
    const failures: unknown[] = [];
    const server = createServer((request, response) => {
      asked.push({ url: request.url, padding: request.headers['add-padding'] });
      return answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const outbound = createOutbound({ allowed: [origin] });
    stop = async () => {
      server.closeAllConnections();
      server.close();
      await outbound.close();
    };
    const onFailed = (error: unknown) => failures.push(error);
    const asking = breachedByRange({ url: `${origin}/range/`, outbound, onFailed });
    return { policy: createPasswordPolicy(12, asking), asked, failures };
  };
  const line = (seen: number) => `${'0'.repeat(35)}:7\r\n${digest.slice(5)}:${seen}\r\n${'F'.repeat(35)}:0`;

  it('learns five digits, and refuses a password that was seen', async () => {
    const { policy, asked, failures } = await ask((_, response) => response.end(line(3)));
    expect(await policy.judge(password, { words: [] })).toEqual(['breached']);
    expect(await policy.judge('six yellow lanterns glow', { words: [] })).toEqual([]);
    expect(asked[0]).toEqual({ url: `/range/${digest.slice(0, 5)}`, padding: 'true' });
    expect(failures).toEqual([]);
  });

  it('is not asked about a password that is refused anyway', async () => {
    const { policy, asked } = await ask((_, response) => response.end(line(3)));
    expect(await policy.judge('password1234', { words: [] })).toEqual(['breached']);
    expect(asked).toEqual([]);
  });

  it('pads its answer with entries that were seen zero times', async () => {
    const { policy } = await ask((_, response) => response.end(line(0)));
    expect(await policy.judge(password, { words: [] })).toEqual([]);
  });

  it.each([
    ['fails', (_, response) => response.writeHead(503).end(line(3))],
    ['redirects', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
    ['is silent', () => undefined],
    ['answers without end', (_, response) => response.end(Buffer.alloc(300_000, 65))],
  ] satisfies [string, RequestListener][])(
    'refuses no password while it %s, and is counted',
    async (_, answer) => {
      const { policy, failures } = await ask(answer);
      expect(await policy.judge(password, { words: [] })).toEqual([]);
      expect(failures).toHaveLength(1);
    },
  );
});
